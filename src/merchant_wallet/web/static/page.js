// Behaviour of every page: copy, dialogs, theme, times in the reader's time zone, toasts. It works on attributes
// that the server wrote. Nothing is evaluated.
"use strict";

(() => {
  const root = document.documentElement;
  const TOAST_MS = 6000;
  const DONE_MS = 2000;

  function announce(text) {
    const announcer = document.getElementById("announcer");
    // A screen reader reads the same text again only if it was removed in between.
    announcer.textContent = "";
    setTimeout(() => { announcer.textContent = text; }, 50);
  }

  // Toasts -----------------------------------------------------------------------------------------------

  function toast(text, tone = "info") {
    const shown = document.createElement("div");
    shown.className = "toast";
    shown.dataset.tone = tone;
    shown.textContent = text;
    document.getElementById("toasts").append(shown);
    setTimeout(() => {
      shown.dataset.leaving = "";
      setTimeout(() => shown.remove(), 250);
    }, TOAST_MS);
  }

  function moveToasts(part) {
    for (const told of part.querySelectorAll("[data-toast]")) {
      toast(told.textContent.trim(), told.dataset.tone);
      told.remove();
    }
  }

  // A response to htmx may have the header HX-Trigger: {"toast": {"text": "…", "tone": "good"}}
  document.addEventListener("toast", (event) => toast(event.detail.text, event.detail.tone));

  // Copying ----------------------------------------------------------------------------------------------

  async function writeClipboard(text) {
    if (navigator.clipboard && window.isSecureContext) {
      await navigator.clipboard.writeText(text);
      return;
    }
    // Pages over plain http have no clipboard API. The old way still works there.
    const carrier = document.createElement("textarea");
    carrier.value = text;
    carrier.className = "visually-hidden";
    document.body.append(carrier);
    carrier.select();
    const done = document.execCommand("copy");
    carrier.remove();
    if (!done) throw new Error("not copied");
  }

  async function copy(button) {
    try {
      await writeClipboard(button.dataset.copy);
    } catch {
      toast(button.dataset.failed, "bad");
      return;
    }
    button.dataset.done = "";
    announce(button.dataset.copied);
    setTimeout(() => { delete button.dataset.done; }, DONE_MS);
  }

  // Dialogs and the side ---------------------------------------------------------------------------------

  function openDialog(id) {
    const dialog = document.getElementById(id);
    if (!dialog || dialog.open) return;
    dialog.showModal();
    // Without this the close button would have the focus. The question comes first.
    const first = dialog.querySelector("[autofocus]")
      || dialog.querySelector(".dialog-body :is(input:not([type=hidden]), select, textarea)")
      || dialog.querySelector(".dialog-foot [data-closes]");
    first?.focus();
  }

  function setSide(id, shown) {
    const side = document.getElementById(id);
    for (const part of [side, ...document.querySelectorAll(`[data-shows-with="${id}"]`)]) {
      part.toggleAttribute("data-shown", shown);
    }
    for (const button of document.querySelectorAll(`[data-shows="${id}"]`)) {
      button.setAttribute("aria-expanded", String(shown));
      if (!shown) button.focus();
    }
    if (shown) (side.querySelector("[aria-current]") || side.querySelector("a, button")).focus();
  }

  function closeMenus(except) {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (menu !== except) menu.open = false;
    }
  }

  function reveal(button) {
    const input = document.getElementById(button.dataset.reveals);
    const shown = input.type === "password";
    input.type = shown ? "text" : "password";
    button.setAttribute("aria-pressed", String(shown));
    button.querySelector("use")?.setAttribute(
      "href", button.querySelector("use").getAttribute("href").replace(/#.*/, shown ? "#eye-off" : "#eye"),
    );
  }

  document.addEventListener("click", (event) => {
    const target = event.target;
    if (!(target instanceof Element)) return;
    closeMenus(target.closest("details.menu"));
    if (target instanceof HTMLDialogElement && target.open) {
      // A click on the dialog element outside its box is a click on the backdrop.
      const box = target.getBoundingClientRect();
      const inside = event.clientX >= box.left && event.clientX <= box.right
        && event.clientY >= box.top && event.clientY <= box.bottom;
      if (!inside) target.close();
      return;
    }
    const button = target.closest("[data-copy], [data-opens], [data-closes], [data-shows], [data-hides], [data-reveals]");
    if (!button) return;
    const does = button.dataset;
    // Without scripts such a link leads to the same page with the dialog open, or closed.
    if (button instanceof HTMLAnchorElement) event.preventDefault();
    if ("copy" in does) copy(button);
    else if ("opens" in does) openDialog(does.opens);
    else if ("closes" in does) button.closest("dialog")?.close();
    else if ("shows" in does) setSide(does.shows, true);
    else if ("hides" in does) setSide(does.hides, false);
    else reveal(button);
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === " " && event.target instanceof HTMLAnchorElement && event.target.role === "button") {
      event.preventDefault();
      event.target.click();
    }
    if (event.key === "Escape") {
      const menu = document.querySelector("details.menu[open]");
      if (menu) {
        menu.open = false;
        menu.querySelector("summary").focus();
      }
      const side = document.querySelector(".side[data-shown]");
      if (side) setSide(side.id, false);
    }
    const typing = event.target instanceof Element && event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      const search = document.querySelector("[data-search]");
      if (search) {
        event.preventDefault();
        search.focus();
        search.select();
      }
    }
  });

  // Theme ------------------------------------------------------------------------------------------------

  function tellTheme() {
    document.dispatchEvent(new CustomEvent("themechange"));
  }

  function setTheme(theme) {
    if (theme === "auto") delete root.dataset.theme;
    else root.dataset.theme = theme;
    for (const choice of document.querySelectorAll('[data-look] [name="theme"]')) {
      choice.setAttribute("aria-pressed", String(choice.value === theme));
    }
    tellTheme();
  }

  // A theme is applied at once and stored in the background. A language needs a new page, which the form loads.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    const choice = event.submitter;
    if (!form.matches("[data-look]") || choice?.name !== "theme") return;
    event.preventDefault();
    setTheme(choice.value);
    const said = new URLSearchParams({ back: "/", theme: choice.value });
    fetch(form.action, { method: "POST", body: said, redirect: "manual", keepalive: true }).catch(() => {});
  });

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", tellTheme);

  // Forms ------------------------------------------------------------------------------------------------

  // A form is sent once. A second click while it waits for the answer does nothing.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (event.defaultPrevented || form.method === "get" || form.method === "dialog") return;
    if (form.hasAttribute("aria-busy")) {
      event.preventDefault();
      event.stopImmediatePropagation();
      return;
    }
    form.setAttribute("aria-busy", "true");
  });

  function freeForms() {
    for (const form of document.querySelectorAll("form[aria-busy]")) form.removeAttribute("aria-busy");
  }

  window.addEventListener("pageshow", freeForms);
  document.addEventListener("htmx:afterRequest", freeForms);

  document.addEventListener("input", (event) => {
    const input = event.target;
    if (input instanceof HTMLInputElement && "digits" in input.dataset) {
      const digits = input.value.replace(/[^0-9]/g, "");
      if (digits !== input.value) input.value = digits;
    }
  });

  document.addEventListener("htmx:configRequest", (event) => {
    const token = document.querySelector('meta[name="csrf"]').content;
    if (token) event.detail.headers["X-CSRF-Token"] = token;
  });

  // Times ------------------------------------------------------------------------------------------------

  const HOURS = { hourCycle: "h23" };
  const styles = {
    moment: { dateStyle: "medium", timeStyle: "medium" },
    minute: { dateStyle: "medium", timeStyle: "short" },
    day: { dateStyle: "long" },
    time: { timeStyle: "short" },
  };
  const formats = new Map();

  function format(style) {
    if (!formats.has(style)) formats.set(style, new Intl.DateTimeFormat(root.lang, { ...(styles[style] || styles.moment), ...HOURS }));
    return formats.get(style);
  }

  function writeTimes(part) {
    for (const time of part.querySelectorAll("time[data-moment]:not([title])")) {
      const at = new Date(time.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      time.title = time.textContent;
      time.textContent = format(time.closest("[data-times]")?.dataset.times || "moment").format(at);
    }
  }

  // Tables that become cards lose their roles for screen readers, so the roles are set here. ---------------

  const roles = [["table", "table"], ["thead, tbody", "rowgroup"], ["tr", "row"], ["thead th", "columnheader"],
    ["tbody th", "rowheader"], ["td", "cell"]];

  function nameCells(part) {
    for (const table of part.querySelectorAll("table.table-cards")) {
      table.setAttribute("role", "table");
      for (const [what, role] of roles.slice(1)) {
        for (const cell of table.querySelectorAll(what)) cell.setAttribute("role", role);
      }
    }
  }

  // Kept scroll ------------------------------------------------------------------------------------------

  function keepScroll() {
    for (const box of document.querySelectorAll("[data-keep-scroll]")) {
      const key = `scroll:${box.dataset.keepScroll}`;
      box.scrollTop = Number(sessionStorage.getItem(key) || 0);
      window.addEventListener("pagehide", () => sessionStorage.setItem(key, String(box.scrollTop)));
    }
  }

  // Focus --------------------------------------------------------------------------------------------------

  // A refused form comes back as a whole page. The first wrong field gets the focus.
  function goToWrong() {
    const wrong = document.querySelector('main [aria-invalid="true"]');
    if (wrong && !document.activeElement?.matches("input, select, textarea")) wrong.focus();
  }

  // Scroll to the selected choice if the row is wider than the screen.
  function showChosen() {
    for (const row of document.querySelectorAll(".segments")) {
      const chosen = row.querySelector("[aria-current], [aria-pressed='true']");
      if (chosen) row.scrollLeft = chosen.offsetLeft - (row.clientWidth - chosen.offsetWidth) / 2;
    }
  }

  function prepare(part) {
    writeTimes(part);
    nameCells(part);
    moveToasts(part);
    for (const dialog of part.querySelectorAll("dialog[data-shown]")) {
      dialog.removeAttribute("data-shown");
      // Without scripts it is shown as a part of the page. Here it becomes a modal dialog.
      dialog.removeAttribute("open");
      openDialog(dialog.id);
    }
  }

  document.addEventListener("htmx:afterSwap", () => prepare(document));
  prepare(document);
  goToWrong();
  showChosen();
  try {
    keepScroll();
  } catch {
    // Inside another site's frame the browser may refuse storage. The page works without it.
  }

  window.page = { toast, announce };
})();
