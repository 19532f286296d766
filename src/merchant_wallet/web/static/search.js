// Suggestions in the search box: a combobox with a list (WAI-ARIA Authoring Practices, "List Autocomplete with Manual
// Selection"). Enter without a chosen suggestion sends the form, as without a script.
"use strict";

(() => {
  const WAIT_MS = 120;
  const input = document.querySelector("[data-suggestions]");
  const list = document.getElementById("suggestions");
  if (!input || !list) return;

  let chosen = -1;
  let timer = 0;
  let asked = null;

  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", list.id);
  input.setAttribute("aria-expanded", "false");

  const options = () => [...list.querySelectorAll("[role=option]")];

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    choose(-1);
  }

  function open() {
    list.hidden = options().length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
  }

  function choose(place) {
    const all = options();
    chosen = place;
    all.forEach((one, at) => one.setAttribute("aria-selected", String(at === place)));
    if (place < 0) {
      input.removeAttribute("aria-activedescendant");
      return;
    }
    input.setAttribute("aria-activedescendant", all[place].id);
    all[place].scrollIntoView({ block: "nearest" });
  }

  async function ask() {
    asked?.abort();
    const word = input.value.trim();
    if (word.length < 2) {
      list.replaceChildren();
      close();
      return;
    }
    asked = new AbortController();
    try {
      const answer = await fetch(`${input.dataset.suggestions}?${new URLSearchParams({ q: word })}`, {
        headers: { "HX-Request": "true" }, signal: asked.signal,
      });
      // The session may have ended, or the service is busy: the form still works.
      if (answer.status !== 200 || input.value.trim() !== word) return;
      const answered = new DOMParser().parseFromString(await answer.text(), "text/html");
      list.replaceChildren(...answered.body.childNodes);
      choose(-1);
      if (document.activeElement === input) open();
      window.page?.announce(list.querySelector("[data-told]")?.dataset.told || "");
    } catch {
      // Another letter was typed, or the network failed. The form still works.
    }
  }

  function go(option) {
    location.assign(option.dataset.href);
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, WAIT_MS);
  });

  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const all = options();
    if (event.key === "Escape" && !list.hidden) {
      event.preventDefault();
      event.stopPropagation();
      close();
    } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && all.length) {
      event.preventDefault();
      if (list.hidden) open();
      const step = event.key === "ArrowDown" ? 1 : -1;
      // Above the first and below the last is the text itself.
      const next = chosen + step;
      choose(next >= all.length ? -1 : next < -1 ? all.length - 1 : next);
    } else if (event.key === "Enter" && chosen >= 0 && !list.hidden) {
      event.preventDefault();
      go(all[chosen]);
    } else if (event.key === "Tab") {
      close();
    }
  });

  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = event.target instanceof Element && event.target.closest("[role=option]");
    if (option) go(option);
  });
  input.addEventListener("focus", () => { if (options().length) open(); });
  input.addEventListener("blur", close);
})();
