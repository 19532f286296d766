// Whether a page is live. Code that hears from the server calls beat(). After two missed beats the page is late and
// shows since when. The state is on the body as data-live-state:
//   open     live
//   waiting  disconnected, reconnecting
//   late     two beats were missed; [data-live-since] shows the time of the last one, [data-live-age] its age
//   paused   the page is hidden
// Without the state, as without scripts, the page says when it was read. Each beat says that what the page shows is
// true now: times in .beats are set to it.
"use strict";

(() => {
  const MISSED_BEATS = 2;
  const SLACK_MS = 1500;
  const TICK_MS = 1000;

  class Freshness {
    constructor(beatMs) {
      this.lateMs = MISSED_BEATS * beatMs + SLACK_MS;
      // The page's content was read before the page arrived.
      this.note();
      setInterval(() => this.look(), TICK_MS);
      document.addEventListener("visibilitychange", () => this.look());
    }

    note() {
      this.heardAt = Date.now();
      this.heardTick = performance.now();
    }

    // One clock may be set back; the other may stop while the machine sleeps.
    get elapsedMs() {
      return Math.max(Date.now() - this.heardAt, performance.now() - this.heardTick);
    }

    get isLate() {
      return this.elapsedMs > this.lateMs;
    }

    beat() {
      this.note();
      this.tell("open");
      for (const place of document.querySelectorAll(".beats time")) {
        place.textContent = writeTime(this.heardAt);
        place.dateTime = new Date(this.heardAt).toISOString();
      }
    }

    // The connection broke: the page says so at once, and after two beats it says since when.
    lose() {
      this.tell(this.isLate ? "late" : "waiting");
    }

    look() {
      if (document.body.dataset.liveState && !document.hidden && this.isLate) this.tell("late");
    }

    tell(state) {
      const before = document.body.dataset.liveState;
      document.body.dataset.liveState = state;
      const late = state === "late";
      for (const place of document.querySelectorAll("[data-live-since]")) {
        place.textContent = late ? writeTime(this.heardAt) : "";
        place.dateTime = new Date(this.heardAt).toISOString();
      }
      for (const place of document.querySelectorAll("[data-live-age]")) {
        place.hidden = !late;
        place.textContent = late ? place.dataset.liveAge.replace("{age}", writeAge(this.elapsedMs)) : "";
      }
      if (late && before !== "late") announce();
    }
  }

  function announce() {
    const sign = document.querySelector(".live-late");
    if (sign) window.page?.announce(sign.textContent.trim());
  }

  function writeTime(atMs) {
    const style = { timeStyle: "medium", hourCycle: "h23" };
    if (new Date(atMs).toDateString() !== new Date().toDateString()) style.dateStyle = "medium";
    return new Intl.DateTimeFormat(document.documentElement.lang, style).format(atMs);
  }

  function writeAge(ageMs) {
    const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
    const [unit, seconds] = units.find(([, size]) => ageMs >= size * 1000) || units[3];
    return new Intl.RelativeTimeFormat(document.documentElement.lang).format(-Math.floor(ageMs / 1000 / seconds), unit);
  }

  window.Freshness = Freshness;
})();
