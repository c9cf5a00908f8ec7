// Sort, filter and copy tables. The listeners are on the document, so that they also serve sections added later.
"use strict";
(() => {
  document.documentElement.classList.add("scripted");

  const value = (cell) => (cell ? cell.dataset.v ?? cell.textContent : "");

  function sort(button) {
    const head = button.closest("th"), table = head.closest("table"), body = table.tBodies[0];
    const column = [...head.parentNode.children].indexOf(head);
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const keyed = [...body.rows].map((row) => {
      const text = value(row.cells[column]), number = Number(text);
      return { row, text, number: text === "" ? NaN : number };
    });
    keyed.sort((a, b) => {
      if ((a.text === "") !== (b.text === "")) return a.text === "" ? 1 : -1; // empty cells come last in both directions
      const both = !Number.isNaN(a.number) && !Number.isNaN(b.number);
      const order = both ? a.number - b.number : a.text.localeCompare(b.text);
      return down ? -order : order;
    });
    body.append(...keyed.map((one) => one.row));
  }

  function filter(input) {
    const table = document.getElementById(input.dataset.table);
    if (!table) return;
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      const text = row.textContent.toLowerCase();
      const found = words.every((word) => text.includes(word));
      row.hidden = !found;
      shown += found ? 1 : 0;
    }
    const count = input.closest(".tools")?.querySelector(".count");
    if (count) count.textContent = `${shown} of ${table.tBodies[0].rows.length}`;
  }

  function tableText(id) {
    const table = document.getElementById(id);
    const line = (row) => [...row.cells].map((cell) => value(cell).replace(/[\t\n]+/g, " ")).join("\t");
    return table ? [...table.rows].filter((row) => !row.hidden).map(line).join("\n") : "";
  }

  async function copy(button) {
    const text = button.dataset.copy ?? tableText(button.dataset.table);
    let done = false;
    try {
      await navigator.clipboard.writeText(text);
      done = true;
    } catch {
      // A page opened from the disk may not use the clipboard API.
      const area = document.createElement("textarea");
      area.value = text;
      area.className = "unseen";
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
      button.focus();
    }
    const label = button.dataset.label ?? (button.dataset.label = button.textContent);
    button.textContent = done ? "Copied" : "Not copied: the browser forbids it";
    setTimeout(() => { button.textContent = label; }, 1500);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button");
    if (button?.classList.contains("sort")) sort(button);
    if (button?.classList.contains("copy")) copy(button);
  });
  document.addEventListener("input", (event) => {
    if (event.target.classList?.contains("filter")) filter(event.target);
  });
})();
