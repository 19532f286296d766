// What the console's pages do by themselves besides page.js. A part that asks for itself again and again
// ([data-pauses]) does so only while somebody can see it.
"use strict";

(() => {
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && event.target.matches("[data-pauses]")) event.preventDefault();
  });

  // Whether what is shown is as it is now.
  function tell(event, state) {
    if (!event.detail.elt.matches("[data-pauses]")) return;
    for (const sign of document.querySelectorAll("[data-polls]")) sign.dataset.liveState = state;
  }

  document.addEventListener("htmx:afterRequest", (event) => tell(event, event.detail.successful ? "open" : "waiting"));

  // Filters that are left empty stay out of the address.
  document.addEventListener("formdata", (event) => {
    if (!event.target.matches("form.filters")) return;
    for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
  });

  document.addEventListener("visibilitychange", () => {
    if (document.hidden || !window.htmx) return;
    for (const part of document.querySelectorAll("[data-pauses]")) window.htmx.trigger(part, "seen");
  });
})();
