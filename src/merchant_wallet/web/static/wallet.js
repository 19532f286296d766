// The wallet's list of movements: grouped by days of the reader's time zone, new ones added above, each opens in a
// sheet. Receipts are shared. Without this script the days are UTC, each movement is a page, and a receipt opens.
"use strict";

// A receipt is handed to the device's own share sheet, or its link is copied. If neither works, it opens.
document.addEventListener("click", async (event) => {
  const link = event.target instanceof Element ? event.target.closest("a[data-share]") : null;
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  try {
    if (navigator.share) {
      await navigator.share({ title: link.dataset.share, url: link.href });
      return;
    }
    await navigator.clipboard.writeText(link.href);
    window.page.toast(link.dataset.copied, "good");
  } catch (error) {
    if (error.name !== "AbortError") location.assign(link.href);
  }
});

// The message after a form is shown once, not again after a reload.
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

  // Puts each line into the group of its day. Lines come newest first.
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

  // New movements. If one page does not fill the gap, the list is loaded again from the start.
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

  // A movement opens above the list. With a modifier key, or if that fails, it opens as a page.
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
