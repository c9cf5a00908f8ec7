"""Run the Python blocks of a page, in order and in one namespace: python .ci/readme.py README.md."""

import re
import sys
from pathlib import Path

page = Path(sys.argv[1])
blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
names: dict[str, object] = {"__name__": "__main__"}
for number, block in enumerate(blocks, 1):
    exec(compile(block, f"{page.name}, block {number}", "exec"), names)
print(f"{page.name}: {len(blocks)} blocks ran")
assert blocks
