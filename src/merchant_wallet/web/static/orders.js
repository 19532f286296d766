// Selecting rows of a table: all at once, and the number selected. The form works without it.
"use strict";

(() => {
  for (const form of document.querySelectorAll("[data-choices]")) {
    const all = form.querySelector("[data-all]");
    const ones = [...form.querySelectorAll("[data-one]")];
    const bar = form.querySelector("[data-bar]");
    const count = form.querySelector("[data-count]");
    if (!all || !bar || !count) continue;

    const tell = () => {
      const chosen = ones.filter((one) => one.checked).length;
      all.checked = chosen === ones.length;
      all.indeterminate = chosen > 0 && chosen < ones.length;
      bar.toggleAttribute("data-chosen", chosen > 0);
      count.textContent = chosen ? count.dataset.some.replace("#", String(chosen)) : count.dataset.none;
      for (const button of form.querySelectorAll("[data-acts]")) button.disabled = chosen === 0;
    };

    all.addEventListener("change", () => {
      for (const one of ones) one.checked = all.checked;
      tell();
    });
    form.addEventListener("change", tell);
    // After "back" the browser has restored the selection.
    window.addEventListener("pageshow", tell);
    tell();
  }
})();
