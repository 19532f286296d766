// What the console's pages do by themselves besides page.js. A part that asks for itself again and again
// ([data-pauses]) does so only while somebody can see it.
"use strict";

(() => {
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && event.target.matches("[data-pauses]")) event.preventDefault();
  });

  // Whether what is shown is as it is now: a part with data-beat-s asks for itself that often, and each answer is a beat.
  const part = document.querySelector("[data-beat-s]");
  const freshness = part && new window.Freshness(Number(part.dataset.beatS) * 1000);
  if (freshness) freshness.beat();

  function hear(event) {
    // The part that asked; by now it may have been swapped for its answer.
    if (!freshness || !event.detail.requestConfig?.elt.matches("[data-beat-s]")) return;
    if (event.detail.successful) freshness.beat();
    else freshness.lose();
    // What moves no more asks no more, and needs no sign.
    if (!document.querySelector("[data-beat-s]")) delete document.body.dataset.liveState;
  }

  document.addEventListener("htmx:afterRequest", hear);

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
