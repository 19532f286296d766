// Figures that change while the page is open. The body names where it is told: data-live-url. An event's data is
// JSON: {"name": "text", …}. Each [data-live="name"] gets its text, and each [data-live-refresh~="event"] is asked
// anew by htmx (hx-trigger="live"). `ended` means that the session is over.
"use strict";

(() => {
  const url = document.body.dataset.liveUrl;
  if (!url || !("EventSource" in window)) return;

  const EVENTS = ["balance", "deposits", "activity"];
  const FIRST_WAIT_MS = 1000;
  const LONGEST_WAIT_MS = 30000;
  let source = null;
  let waiting = 0;
  let waitMs = FIRST_WAIT_MS;
  let missed = false;

  function tell(state) {
    document.body.dataset.liveState = state;
  }

  function write(texts) {
    for (const [name, text] of Object.entries(texts)) {
      for (const place of document.querySelectorAll(`[data-live="${CSS.escape(name)}"]`)) {
        if (place.textContent === text) continue;
        place.textContent = text;
        place.classList.remove("fresh");
        // Reading the size makes the browser start the animation anew.
        void place.offsetWidth;
        place.classList.add("fresh");
      }
    }
  }

  function refresh(event) {
    for (const place of document.querySelectorAll(`[data-live-refresh~="${event}"]`)) {
      if (window.htmx) window.htmx.trigger(place, "live");
    }
  }

  function read(event) {
    let texts = null;
    try {
      texts = JSON.parse(event.data);
    } catch {
      // An event without texts only says that something changed.
    }
    if (texts && typeof texts === "object") write(texts);
    refresh(event.type);
  }

  function close() {
    clearTimeout(waiting);
    source?.close();
    source = null;
  }

  // The browser gives up for good on an answer that is no stream, so coming back is done here.
  function comeBack() {
    close();
    missed = true;
    tell("waiting");
    waiting = setTimeout(open, waitMs * (0.75 + Math.random() / 2));
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
  }

  function open() {
    if (document.hidden || source) return;
    source = new EventSource(url);
    source.onopen = () => {
      waitMs = FIRST_WAIT_MS;
      tell("open");
      // What was told in between was told to nobody.
      if (missed) EVENTS.forEach(refresh);
      missed = false;
    };
    source.onerror = comeBack;
    for (const name of EVENTS) source.addEventListener(name, read);
    source.addEventListener("ended", () => {
      close();
      location.reload();
    });
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      close();
      missed = true;
      tell("paused");
    } else {
      open();
    }
  });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  open();
})();
