// Behaviour of the console's pages, besides page.js. A part that polls itself ([data-pauses]) does so only while
// the page is visible.
"use strict";

(() => {
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (document.hidden && event.target.matches("[data-pauses]")) event.preventDefault();
  });

  // Whether the page is live: a part with data-beat-s polls itself that often, and each answer is a heartbeat.
  const part = document.querySelector("[data-beat-s]");
  const freshness = part && new window.Freshness(Number(part.dataset.beatS) * 1000);
  if (freshness) freshness.beat();

  function hear(event) {
    // The part that sent the request. Its answer may have replaced it by now.
    if (!freshness || !event.detail.requestConfig?.elt.matches("[data-beat-s]")) return;
    if (event.detail.successful) freshness.beat();
    else freshness.lose();
    // A part that is final polls no more and needs no sign.
    if (!document.querySelector("[data-beat-s]")) delete document.body.dataset.liveState;
  }

  document.addEventListener("htmx:afterRequest", hear);

  // Empty filters are left out of the URL.
  document.addEventListener("formdata", (event) => {
    if (!event.target.matches("form.filters")) return;
    for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
  });

  document.addEventListener("visibilitychange", () => {
    if (document.hidden || !window.htmx) return;
    for (const part of document.querySelectorAll("[data-pauses]")) window.htmx.trigger(part, "seen");
  });
})();
