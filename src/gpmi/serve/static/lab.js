// What the pages do beyond plain forms: follow the study as it changes, and fill cells from a pasted column.
"use strict";
(() => {
  const body = document.body, live = document.getElementById("live");
  // Whether a field has content, typed now or shown again with a message.
  const dirty = (input) => input.value.trim() !== "";

  // Following the study

  function showStatus(text, state) {
    if (!live) return;
    if (live.textContent !== text) live.textContent = text;
    live.dataset.state = state;
  }

  function rowsOf(part) {
    return [...part.querySelectorAll("tr[data-number]")];
  }

  // Add new rows, and remove rows that are gone unless something was typed into them.
  function mergeRows(part, fresh) {
    const table = part.querySelector("tbody"), other = fresh.querySelector("tbody");
    const typed = [...part.querySelectorAll("input:not([type=hidden]), textarea")].some(dirty);
    if (!table || (!other && !typed)) {
      part.replaceChildren(...fresh.childNodes);
      return;
    }
    const added = new Map(rowsOf(fresh).map((row) => [row.dataset.number, row]));
    for (const row of rowsOf(part)) {
      const number = row.dataset.number;
      if (added.has(number)) {
        added.delete(number);
      } else if ([...row.querySelectorAll("input")].some(dirty) || row.contains(document.activeElement)) {
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
    const order = part.querySelector("input[name=order]");
    if (order) order.value = rowsOf(part).map((row) => row.dataset.number).join(",");
  }

  function show(page) {
    for (const part of document.querySelectorAll("[data-live]")) {
      const fresh = page.getElementById(part.id);
      if (!fresh || fresh.innerHTML === part.innerHTML) continue;
      if (part.dataset.live === "rows") mergeRows(part, fresh);
      else if (!part.contains(document.activeElement)) part.replaceChildren(...fresh.childNodes);
    }
    Object.assign(body.dataset, page.body.dataset);
  }

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
        if (/\/(results|ask|observe)$/.test(here.pathname)) here.pathname = here.pathname.replace(/\/[a-z]+$/, "");
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

  // Pasting a column into a cell also fills the cells below it

  document.addEventListener("paste", (event) => {
    const first = event.target.closest?.("input.result");
    if (!first || !event.clipboardData) return;
    const lines = event.clipboardData.getData("text").replace(/\r\n?/g, "\n").replace(/\n+$/, "").split("\n");
    if (lines.length < 2 || lines.some((line) => line.includes("\t"))) return;
    event.preventDefault();
    const cells = [...document.querySelectorAll("input.result")];
    cells.slice(cells.indexOf(first)).slice(0, lines.length).forEach((cell, i) => {
      cell.value = lines[i].trim();
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

  // New studies: add a row

  const add = document.getElementById("add-row"), parameters = document.querySelector("#parameters tbody");
  if (add && parameters) {
    add.hidden = false;
    const empty = (row) => [...row.querySelectorAll("input[type=text]")].every((input) => !input.value);
    for (const row of [...parameters.rows].slice(3).reverse()) {
      if (!empty(row)) break;
      row.remove();
    }
    const kinds = () => {
      for (const row of parameters.rows) row.dataset.kind = row.querySelector("select").value;
    };
    parameters.addEventListener("change", kinds);
    kinds();
    add.addEventListener("click", () => {
      const row = parameters.rows[parameters.rows.length - 1].cloneNode(true), next = parameters.rows.length;
      for (const control of row.querySelectorAll("input, select")) {
        control.name = control.name.replace(/\d+$/, next);
        control.setAttribute("aria-label", control.getAttribute("aria-label").replace(/\d+/, next + 1));
        if (control.type === "checkbox") control.checked = false;
        else if (control.tagName === "INPUT") control.value = "";
      }
      parameters.append(row);
      kinds();
      row.querySelector("input").focus();
    });
  }
})();
