// Figures that change while the page is open. The body has the URL of the event stream: data-live-url. An event's
// data is JSON: {"name": "text", …}. Each [data-live="name"] gets its text, and htmx loads each
// [data-live-refresh~="event"] again (hx-trigger="live"). `beat` comes every
// data-live-beat-s when nothing has changed; see freshness.js.
// `ended` means that the session is over.
"use strict";

(() => {
  const url = document.body.dataset.liveUrl;
  if (!url || !("EventSource" in window)) return;

  const EVENTS = ["balance", "deposits", "activity"];
  const FIRST_WAIT_MS = 1000;
  const MAX_WAIT_MS = 30000;
  let source = null;
  let waiting = 0;
  let waitMs = FIRST_WAIT_MS;
  let missed = false;
  let openedTick = 0;
  const beatMs = Number(document.body.dataset.liveBeatS || 5) * 1000;
  const freshness = new window.Freshness(beatMs);

  function write(texts) {
    for (const [name, text] of Object.entries(texts)) {
      for (const place of document.querySelectorAll(`[data-live="${CSS.escape(name)}"]`)) {
        if (place.textContent === text) continue;
        place.textContent = text;
        place.classList.remove("fresh");
        // Reading the size makes the browser restart the animation.
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

  // An open connection proves nothing: a server that hangs keeps it open.
  function beat() {
    waitMs = FIRST_WAIT_MS;
    freshness.beat();
    // Events in between were lost.
    if (missed) EVENTS.forEach(refresh);
    missed = false;
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

  // The browser never retries after an answer that is not a stream, so we reconnect here.
  function comeBack() {
    close();
    missed = true;
    freshness.lose();
    waiting = setTimeout(open, waitMs * (0.75 + Math.random() / 2));
    waitMs = Math.min(waitMs * 2, MAX_WAIT_MS);
  }

  function open() {
    if (document.hidden || source) return;
    openedTick = performance.now();
    source = new EventSource(url);
    source.onerror = comeBack;
    source.addEventListener("beat", beat);
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
      freshness.tell("paused");
    } else {
      freshness.lose();
      open();
    }
  });
  // A silent connection is replaced by a new one.
  setInterval(() => {
    if (source && freshness.isLate && performance.now() - openedTick > freshness.lateMs) comeBack();
  }, beatMs);
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  open();
})();
