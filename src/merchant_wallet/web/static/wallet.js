// The wallet's list of movements: by the days of the reader's own zone, new ones above as they come in, and each in
// a sheet. Without this the list is by UTC days and each movement a page.
"use strict";

// What a form has done is told once, not again when the page is loaded anew.
if (new URLSearchParams(location.search).has("said")) history.replaceState(null, "", location.pathname);

(() => {
  const list = document.getElementById("activity");
  if (!list) return;

  const language = document.documentElement.lang;
  const dayFormat = new Intl.DateTimeFormat(language, { dateStyle: "full" });
  const FRESH_MS = 2000;

  function dayOf(atMs) {
    const at = new Date(atMs);
    return new Date(at.getFullYear(), at.getMonth(), at.getDate()).getTime();
  }

  function nameDay(day) {
    const today = dayOf(Date.now());
    const yesterday = dayOf(today - 1);
    if (day === today) return list.dataset.today;
    return day === yesterday ? list.dataset.yesterday : dayFormat.format(day);
  }

  function makeGroup(day) {
    const group = document.createElement("section");
    group.className = "activity-group";
    group.dataset.day = String(day);
    const head = document.createElement("h3");
    head.className = "activity-day";
    head.textContent = nameDay(day);
    const lines = document.createElement("ul");
    lines.className = "activity";
    lines.dataset.times = "time";
    group.append(head, lines);
    return group;
  }

  // Puts every line into the group of its own day; lines come newest first.
  function regroup(lines) {
    const more = list.querySelector(".activity-more");
    for (const old of list.querySelectorAll(".activity-group")) old.remove();
    let group = null;
    for (const line of lines) {
      const day = dayOf(Number(line.dataset.at));
      if (group?.dataset.day !== String(day)) {
        group = makeGroup(day);
        list.insertBefore(group, more);
      }
      group.lastElementChild.append(line);
    }
  }

  function linesIn(part) {
    return [...part.querySelectorAll("li[data-entry]")];
  }

  // What has come in since; a gap that one page does not fill means that the list is begun anew.
  function takeNewest(arrived) {
    const shown = linesIn(list);
    const known = new Set(shown.map((line) => line.dataset.entry));
    const fresh = linesIn(arrived).filter((line) => !known.has(line.dataset.entry));
    const joins = fresh.length < linesIn(arrived).length || shown.length === 0;
    arrived.replaceChildren();
    if (fresh.length === 0) return;
    if (!joins) {
      location.reload();
      return;
    }
    document.getElementById("activity-empty")?.remove();
    for (const line of fresh) {
      line.classList.add("fresh");
      setTimeout(() => line.classList.remove("fresh"), FRESH_MS);
    }
    regroup([...fresh, ...shown]);
  }

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target.id === "newest") takeNewest(event.detail.target);
  });
  document.addEventListener("htmx:afterSettle", (event) => {
    if (list.contains(event.detail.elt)) regroup(linesIn(list));
  });
  regroup(linesIn(list));

  // A movement opens over the list; with a key held, or where that fails, it is a page like any other.
  const sheet = document.createElement("div");
  document.body.append(sheet);

  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a[data-sheet]") : null;
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0 || !window.htmx) return;
    event.preventDefault();
    window.htmx.ajax("GET", link.getAttribute("href"), { target: sheet, swap: "innerHTML", source: link });
  });
  for (const failure of ["htmx:responseError", "htmx:sendError"]) {
    document.addEventListener(failure, (event) => {
      const link = event.detail.elt;
      if (link.matches("a[data-sheet]")) location.assign(link.href);
    });
  }
})();
