// Sort, filter and copy tables, and explore a front. The listeners are on the document, so that they also serve sections
// added later. A page that replaces a front dispatches "front-replaced" on the document afterwards.
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

  // The front: a slider fades what it excludes and shows the recipe next to it; so does a click on a point

  const positions = new Map(); // of the sliders that were moved, by index
  let recipe = null; // the number of the trial whose recipe was chosen

  function limitOf(slider) {
    const lo = Number(slider.dataset.lo), hi = Number(slider.dataset.hi);
    return lo + (hi - lo) * Number(slider.value) / Number(slider.max);
  }

  const isOff = (slider) => slider.value === slider.dataset.start; // it was not moved

  function limitText(slider) {
    if (isOff(slider)) return "any";
    const step = (Number(slider.dataset.hi) - Number(slider.dataset.lo)) / Number(slider.max);
    const digits = step > 0 ? Math.ceil(-Math.log10(step)) : 0, limit = limitOf(slider);
    const text = digits > 6 || digits < -6 ? limit.toPrecision(4) : limit.toFixed(Math.max(0, digits));
    const words = slider.dataset.words;
    return words.includes("…") ? words.replace("…", text) : `${words} ${text}`;
  }

  function excludes(slider, values) {
    if (isOff(slider)) return false;
    const slack = 1e-6 * (Number(slider.dataset.hi) - Number(slider.dataset.lo)), value = values[slider.dataset.index];
    return slider.dataset.sense === "least" ? value < limitOf(slider) - slack : value > limitOf(slider) + slack;
  }

  const valuesOf = (point) => point.dataset.values.split(" ").map(Number);

  function applyLimits(tool, moved) {
    const sliders = [...tool.querySelectorAll(".front-limit:enabled")], left = new Map(), all = new Set();
    for (const slider of sliders) {
      const text = limitText(slider);
      slider.closest("label").querySelector(".front-value").textContent = text;
      slider.setAttribute("aria-valuetext", text);
    }
    for (const point of tool.querySelectorAll(".front-point")) {
      const values = valuesOf(point), number = point.dataset.number, faded = sliders.some((one) => excludes(one, values));
      point.classList.toggle("faded", faded);
      if (!point.classList.contains("front")) continue;
      all.add(number);
      if (!faded) left.set(number, values);
      document.getElementById(`front-${number}`)?.classList.toggle("faded", faded);
    }
    const words = `${left.size} of ${all.size} ${all.size === 1 ? "trial" : "trials"} on the front ${left.size === 1 ? "is" : "are"} left.`;
    const status = tool.querySelector(".front-left"), none = tool.querySelector(".front-none");
    if (status && status.textContent !== words) status.textContent = words;
    if (none) none.textContent = left.size ? "" : "No trial on the front meets this.";
    if (none) none.hidden = left.size > 0;
    if (!moved || !left.size) return;
    const away = ([, values]) => Math.abs(values[moved.dataset.index] - limitOf(moved));
    showRecipe(tool, [...left].reduce((a, b) => (away(b) < away(a) ? b : a))[0]);
  }

  function showRecipe(tool, number) {
    const cards = [...tool.querySelectorAll(".front-recipe")];
    if (!cards.some((card) => card.dataset.number === number)) return;
    recipe = number;
    for (const card of cards) card.hidden = card.dataset.number !== number;
    for (const row of document.querySelectorAll("tr[id^=front-]")) row.classList.toggle("chosen", row.id === `front-${number}`);
    for (const point of tool.querySelectorAll(".front-point")) {
      point.classList.toggle("chosen", point.dataset.number === number);
      if (point.classList.contains("front")) point.setAttribute("tabindex", point.dataset.number === number ? "0" : "-1");
    }
  }

  function prepareFronts() {
    for (const tool of document.querySelectorAll(".front-tool")) {
      for (const slider of tool.querySelectorAll(".front-limit")) slider.value = positions.get(slider.dataset.index) ?? slider.value;
      applyLimits(tool);
      const shown = tool.querySelector(".front-recipe:not([hidden])");
      if (shown) showRecipe(tool, recipe ?? shown.dataset.number);
    }
  }

  const pointOf = (event) => event.target.closest?.(".front-point.front");
  document.addEventListener("input", (event) => {
    if (!event.target.classList?.contains("front-limit")) return;
    positions.set(event.target.dataset.index, event.target.value);
    applyLimits(event.target.closest(".front-tool"), event.target);
  });
  for (const kind of ["click", "focusin"]) {
    document.addEventListener(kind, (event) => {
      const point = pointOf(event);
      if (!point || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      showRecipe(point.closest(".front-tool"), point.dataset.number);
    });
  }
  document.addEventListener("keydown", (event) => { // the arrow keys go along the front, from left to right
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key], point = step && pointOf(event);
    if (!point) return;
    const place = (one) => Number(one.querySelector(".front-target").getAttribute("cx"));
    const points = [...point.ownerSVGElement.querySelectorAll(".front-point.front")].sort((a, b) => place(a) - place(b));
    event.preventDefault();
    points[points.indexOf(point) + step]?.focus();
  });
  document.addEventListener("front-replaced", prepareFronts);
  prepareFronts();

  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button");
    if (button?.classList.contains("sort")) sort(button);
    if (button?.classList.contains("copy")) copy(button);
  });
  document.addEventListener("input", (event) => {
    if (event.target.classList?.contains("filter")) filter(event.target);
  });
})();
