// What the pages do beyond plain forms: follow the study as it changes, and fill cells from a pasted column.
"use strict";
(() => {
  const body = document.body, live = document.getElementById("live");
  // Whether a field has content of its own, typed now or shown again with a message: other than what was suggested.
  const dirty = (input) => input.value.trim() !== (input.dataset.suggested ?? "");
  const FIELDS = "input:not([type=hidden]), textarea, select[data-suggested]";

  // Following the study

  function showStatus(text, state) {
    if (!live) return;
    if (live.textContent !== text) live.textContent = text;
    live.dataset.state = state;
  }

  function rowsOf(part) {
    return [...part.querySelectorAll("tr[data-number]")];
  }

  // Whether somebody is at work in a part of the page, so that it must not be replaced as a whole.
  const inUse = (part) =>
    part.contains(document.activeElement) || part.querySelector("details[open]") !== null ||
    [...part.querySelectorAll(FIELDS)].some(dirty);

  // Add new rows, and remove rows that are gone unless something was typed into them.
  function mergeRows(part, fresh) {
    const table = part.querySelector("tbody"), other = fresh.querySelector("tbody");
    // A part with a form of its own differs from the fresh one by the key of the form, even if no row has changed.
    const replaceable = !inUse(part) && (!other || !part.querySelector("form"));
    if (!table || replaceable) {
      part.replaceChildren(...fresh.childNodes);
    } else {
      const added = new Map(rowsOf(fresh).map((row) => [row.dataset.number, row]));
      for (const row of rowsOf(part)) {
        const number = row.dataset.number, newer = added.get(number);
        if (newer) {
          added.delete(number);
          if (!inUse(row) && row.innerHTML !== newer.innerHTML) row.replaceWith(newer);
        } else if ([...row.querySelectorAll(FIELDS)].some(dirty) || row.contains(document.activeElement)) {
          if (!row.querySelector(".problem")) {
            const note = document.createElement("p");
            note.className = "problem";
            note.textContent = "Someone else has entered a result. What you typed stays here; when you save it, you can decide.";
            row.lastElementChild.append(note);
          }
        } else {
          row.remove();
        }
      }
      for (const row of added.values()) table.append(row);
    }
    // A trial that lacks outputs has moved to another table, unless something was typed into its row in the first one.
    for (const row of rowsOf(part)) {
      const same = [...document.querySelectorAll(`tr[data-number="${row.dataset.number}"]`)];
      if (same.length > 1 && same[0] !== row) row.remove();
    }
    const order = part.querySelector("input[name=order]");
    if (order) order.value = rowsOf(part).map((row) => row.dataset.number).join(",");
  }

  const sentFirst = new Map(); // pictures as the server sent them: their folds are opened here
  // Pictures are closed where there is little room for them; after an update they are as they were before.
  const narrow = matchMedia("(max-width: 44rem)");
  function unfold(part, before) {
    for (const fold of part.querySelectorAll("details[id]")) {
      const open = before.get(fold.id) ?? (fold.open && !(narrow.matches && fold.classList.contains("picture") && !fold.dataset.keep));
      if (fold.open !== open) fold.open = open;
    }
  }
  document.querySelectorAll("#pictures").forEach((part) => sentFirst.set(part.id, part.innerHTML));
  unfold(document, new Map());

  const asSent = new Map(); // fronts as the server sent them: report.js changes them when a slider moves
  for (const part of document.querySelectorAll("[data-live=front]")) asSent.set(part.id, part.innerHTML);

  function show(page) {
    for (const part of document.querySelectorAll("[data-live]")) {
      const fresh = page.getElementById(part.id), sent = fresh?.innerHTML;
      if (!fresh || sent === (asSent.get(part.id) ?? sentFirst.get(part.id) ?? part.innerHTML)) continue;
      if (sentFirst.has(part.id)) sentFirst.set(part.id, sent);
      if (part.dataset.live === "rows") mergeRows(part, fresh);
      else if (part.contains(document.activeElement)) part.dataset.stale = "yes";
      else {
        const folds = new Map([...part.querySelectorAll("details[id]")].map((fold) => [fold.id, fold.open]));
        part.replaceChildren(...fresh.childNodes);
        unfold(part, folds);
      }
      if (part.dataset.live === "front" && !part.dataset.stale) {
        asSent.set(part.id, sent);
        document.dispatchEvent(new Event("front-replaced")); // report.js sets its sliders again
      }
    }
    Object.assign(body.dataset, page.body.dataset);
  }

  // A part that was not replaced because it had the focus is replaced once it has lost it.
  document.addEventListener("focusout", (event) => {
    const part = event.target.closest?.("[data-stale]");
    if (!part || part.contains(event.relatedTarget)) return;
    delete part.dataset.stale;
    refresh();
  });

  let running = false, again = false;
  async function refresh() {
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      do {
        again = false;
        const here = new URL(location.href);
        here.searchParams.delete("said");
        if (/\/(results|ask|observe|choose|plan)$/.test(here.pathname)) here.pathname = here.pathname.replace(/\/[a-z]+$/, "");
        const answer = await fetch(here, { headers: { accept: "text/html" } });
        if (answer.ok) show(new DOMParser().parseFromString(await answer.text(), "text/html"));
      } while (again);
    } catch {
      showStatus("The server does not answer.", "away"); // the next event tries again
    } finally {
      running = false;
    }
  }

  if (body.dataset.events) {
    const source = new EventSource(body.dataset.events);
    source.onopen = () => showStatus("Live", "on");
    source.onerror = () => showStatus("The server does not answer. What you typed stays here.", "away");
    source.onmessage = (event) => {
      showStatus("Live", "on");
      const state = JSON.parse(event.data);
      if (Object.entries(state).some(([name, value]) => name in body.dataset && Number(body.dataset[name]) !== value)) refresh();
    };
    addEventListener("pagehide", () => source.close());
  }

  // Pasting columns into a cell also fills the cells below it and to its right

  document.addEventListener("paste", (event) => {
    const first = event.target.closest?.("input.result");
    if (!first || !event.clipboardData) return;
    const lines = event.clipboardData.getData("text").replace(/\r\n?/g, "\n").replace(/\n+$/, "").split("\n");
    const cells = lines.map((line) => line.split("\t")), wide = document.querySelector(".sheet.several");
    if (cells.some((line) => line.length > 1) ? !wide : lines.length < 2) return;
    event.preventDefault();
    const rows = rowsOf(first.closest("table")), output = Number(first.dataset.output);
    rows.slice(rows.indexOf(first.closest("tr"))).slice(0, lines.length).forEach((row, i) => {
      cells[i].forEach((text, j) => {
        const cell = row.querySelector(`input.result[data-output="${output + j}"]`);
        if (cell) cell.value = text.trim();
      });
    });
  });

  // A form is sent once, and its button shows that it is being sent

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "yes";
    const button = event.submitter;
    if (button && form.dataset.busy) button.textContent = form.dataset.busy;
    if (button) button.setAttribute("aria-busy", "true");
  });
  addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach((form) => delete form.dataset.sent));

  // A narrow page shows a few experiments at first
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-all]");
    if (button) document.getElementById(button.dataset.all).classList.add("all");
  });
  document.querySelectorAll("[data-print]").forEach((button) => button.addEventListener("click", () => print()));

  // What was typed and not saved comes back after another form of the page was sent

  const results = document.getElementById("results"), draft = `gpmi:${location.pathname.replace(/\/(results|ask|observe|choose|plan)$/, "")}`;
  if (results) {
    const fields = () => [...results.querySelectorAll(FIELDS)].filter((field) => field.name && !["who", "pasted"].includes(field.id)); // a column belongs to the rows of now
    let sent = false;
    results.addEventListener("submit", () => (sent = true));
    addEventListener("pagehide", () => {
      const typed = sent ? [] : fields().filter(dirty).map((field) => [field.name, field.value]);
      try {
        if (typed.length) sessionStorage.setItem(draft, JSON.stringify(typed));
        else sessionStorage.removeItem(draft);
      } catch {} // the browser keeps nothing
    });
    try {
      for (const [name, value] of JSON.parse(sessionStorage.getItem(draft) ?? "[]")) {
        const field = fields().find((one) => one.name === name);
        if (!field || dirty(field)) continue;
        field.value = value;
        document.getElementById("waiting")?.classList.add("all");
        const fold = field.closest("details") ?? (field.classList.contains("used") && field.closest("tr").querySelector(".beside"));
        if (fold) fold.open = true;
      }
    } catch {}
  }

  // New studies: add a row

  function growing(button, rows, least, onChange) {
    if (!button || !rows) return;
    button.hidden = false;
    const empty = (row) => [...row.querySelectorAll("input[type=text]")].every((input) => !input.value);
    for (const row of [...rows.rows].slice(least).reverse()) {
      if (!empty(row)) break;
      row.remove();
    }
    rows.addEventListener("change", onChange);
    onChange();
    button.addEventListener("click", () => {
      const row = rows.rows[rows.rows.length - 1].cloneNode(true), next = rows.rows.length;
      row.querySelectorAll(".problem").forEach((words) => words.remove());
      for (const control of row.querySelectorAll("input, select")) {
        control.removeAttribute("aria-invalid");
        control.removeAttribute("aria-describedby");
        control.name = control.name.replace(/\d+$/, next);
        control.setAttribute("aria-label", control.getAttribute("aria-label").replace(/\d+/, next + 1));
        if (control.type === "checkbox") control.checked = false;
        else if (control.tagName === "INPUT") control.value = "";
      }
      rows.append(row);
      onChange();
      row.querySelector("input").focus();
    });
  }
  const parameters = document.querySelector("#parameters tbody");
  growing(document.getElementById("add-row"), parameters, 3, () => {
    for (const row of parameters.rows) row.dataset.kind = row.querySelector("select").value;
  });
  growing(document.getElementById("add-output"), document.querySelector("#outputs tbody"), 3, () => {});
})();
