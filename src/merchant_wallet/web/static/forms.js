// What is typed into the page's forms outlives a change of language and the end of a session. Passwords and codes do
// not. Everything works without it: a form that was sent too late is listed by the server.
"use strict";

(() => {
  const person = document.body.dataset.person || "";
  const key = `typed:${person}:${location.pathname}${location.search}`;
  const secret = "[type=password], [autocomplete=one-time-code], [data-secret]";

  const forms = () => [...document.querySelectorAll("main form[method=post]:not([data-kept-plain] form)")];

  function isTyped(field) {
    return field.name && field.name !== "csrf" && !field.matches(secret)
      && !["hidden", "submit", "button", "file"].includes(field.type);
  }

  function isChanged(field) {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field instanceof HTMLSelectElement) return [...field.options].some((one) => one.selected !== one.defaultSelected);
    return field.value !== field.defaultValue;
  }

  const actionOf = (form) => new URL(form.getAttribute("action"), location.href).pathname;

  function listChanged() {
    return forms().flatMap((form) => [...form.elements].filter((field) => isTyped(field) && isChanged(field))
      .map((field) => ({ action: actionOf(form), name: field.name, value: field.value, checked: field.checked === true })));
  }

  function tell(field) {
    field.dispatchEvent(new Event("input", { bubbles: true }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }

  function openAround(form) {
    const dialog = form.closest("dialog");
    if (dialog && !dialog.open) dialog.showModal();
    const fold = form.closest("details");
    if (fold) fold.open = true;
  }

  // A change of language loads the page anew.

  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-look]") || event.submitter?.name !== "language") return;
    const changed = listChanged();
    try {
      if (changed.length) sessionStorage.setItem(key, JSON.stringify(changed));
    } catch {
      // The browser refuses storage. Then the page is as it was sent.
    }
  });

  function restore() {
    let changed = null;
    try {
      changed = JSON.parse(sessionStorage.getItem(key) || "null");
      sessionStorage.removeItem(key);
    } catch {
      return;
    }
    for (const was of changed || []) {
      for (const form of forms().filter((one) => actionOf(one) === was.action)) {
        const same = [...form.elements].filter((field) => field.name === was.name && isTyped(field));
        const field = same.find((one) => one.value === was.value && /checkbox|radio/.test(one.type))
          || same.find((one) => !/checkbox|radio/.test(one.type));
        if (!field) continue;
        if (/checkbox|radio/.test(field.type)) field.checked = was.checked;
        else field.value = was.value;
        openAround(form);
        tell(field);
      }
    }
  }

  // A form that was sent after the session had ended goes back into the page's own form. ------------------

  function fillKept(box) {
    const action = box.dataset.action;
    const kept = [...box.querySelectorAll("[data-kept]")].map((one) => [one.name, one.value]);
    const leads = (form) => actionOf(form) === action
      || [...form.querySelectorAll("[formaction]")].some((one) => new URL(one.formAction).pathname === action);
    const names = new Set(kept.map(([name]) => name));
    const has = (form) => [...names].filter((name) => form.elements[name]).length;
    const form = forms().filter(leads).sort((one, other) => has(other) - has(one))[0];
    if (!form || !has(form)) return;
    for (const field of form.elements) {
      if (!field.name || field.name === "csrf" || field.matches(secret) || ["submit", "button", "file"].includes(field.type)) continue;
      const values = kept.filter(([name]) => name === field.name).map(([, value]) => value);
      if (field.type === "checkbox" || field.type === "radio") field.checked = values.includes(field.value);
      else if (values.length) field.value = values[0];
      tell(field);
    }
    openAround(form);
    box.querySelector("[data-kept-plain]").remove();
    const first = [...form.elements].find((field) => names.has(field.name) && isTyped(field));
    if (first) first.focus();
  }

  // The session ends while somebody edits: the page stays, and says so. ------------------------------------

  document.addEventListener("sessionended", (event) => {
    const url = event.detail.url;
    const said = document.getElementById("session-ended");
    if (!listChanged().length || !said) {
      if (url && url.startsWith("/console/")) location.assign(url);
      return;
    }
    said.hidden = false;
  });

  restore();
  for (const box of document.querySelectorAll("[data-kept-form]")) fillKept(box);
})();
