// Selecting rows of a table: all at once, the number selected and what they come to. The form works without it.
"use strict";

(() => {
  // Units are millionths. Their sum may be beyond what a number holds exactly.
  function show(units) {
    const fraction = String(units % 1000000n).padStart(6, "0").replace(/0{1,4}$/, "");
    return `${String(units / 1000000n).replace(/\B(?=(\d{3})+$)/g, ",")}.${fraction}`;
  }

  for (const form of document.querySelectorAll("[data-choices]")) {
    // One is in the head of the table, the other above the cards of a phone.
    const alls = [...form.querySelectorAll("[data-all]")];
    const ones = [...form.querySelectorAll("[data-one]")];
    const bar = form.querySelector("[data-bar]");
    const count = form.querySelector("[data-count]");
    const total = form.querySelector("[data-total]");
    if (!alls.length || !bar || !count) continue;

    const tell = () => {
      const checked = ones.filter((one) => one.checked);
      const chosen = checked.length;
      for (const all of alls) {
        all.checked = chosen === ones.length;
        all.indeterminate = chosen > 0 && chosen < ones.length;
      }
      bar.toggleAttribute("data-chosen", chosen > 0);
      count.textContent = chosen ? count.dataset.some.replace("#", String(chosen)) : count.dataset.none;
      if (total) {
        total.hidden = chosen === 0;
        total.querySelector(".money-number").textContent = show(checked.reduce((sum, one) => sum + BigInt(one.dataset.units), 0n));
      }
      for (const button of form.querySelectorAll("[data-acts]")) button.disabled = chosen === 0;
    };

    for (const all of alls) {
      all.addEventListener("change", () => {
        for (const one of ones) one.checked = all.checked;
        tell();
      });
    }
    form.addEventListener("change", tell);
    // After "back" the browser has restored the selection.
    window.addEventListener("pageshow", tell);
    tell();
  }
})();
