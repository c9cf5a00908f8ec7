"""Draw the pictures of pages, with their own blocks: python docs/assets/draw.py docs/gallery.md docs/start.md."""

import os
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)


def main() -> None:
    texts = {page: Path(page).read_text(encoding="utf-8") for page in sys.argv[1:]}
    os.chdir(Path(__file__).parents[1] / "gallery")
    for page, text in texts.items():
        names: dict[str, object] = {}
        for block in BLOCK.findall(text):
            exec(compile(block, page, "exec"), names)


if __name__ == "__main__":
    main()
