// Signs requests with WebCrypto and, in a sandbox, sends them. The secret is only read from its field: it is
// neither sent nor stored.
"use strict";

(() => {
  const keys = document.querySelector("[data-keys]");
  const encoder = new TextEncoder();

  function toHex(bytes) {
    return [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  function buildStringToSign(path, fields) {
    const names = Object.keys(fields)
      .filter((name) => name !== "sign" && fields[name] !== null && fields[name] !== "")
      .sort();
    return [path, ...names.map((name) => `${name}=${fields[name]}`)].join("\n");
  }

  async function sign(secret, text) {
    const usage = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", encoder.encode(secret), usage, false, ["sign"]);
    return toHex(await crypto.subtle.sign("HMAC", key, encoder.encode(text))).slice(0, 32);
  }

  // A number is signed as it is written, so every number outside of a string becomes a string first.
  function readTexts(raw) {
    return JSON.parse(raw.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (part) => (part[0] === '"' ? part : `"${part}"`)));
  }

  // Without this check one value could be signed as two fields, and the other way round.
  function isPlain(answer, raw) {
    const named = raw.match(/"(?:[^"\\]|\\.)*"(?:\s*:)?/g).filter((part) => part.endsWith(":")).length;
    const isOnce = named === Object.keys(answer).length + Object.keys(answer.data).length;
    return isOnce && Object.entries(answer.data).every(([name, value]) => /^[A-Za-z0-9_]{1,64}$/.test(name)
      && (value === null || (typeof value === "string" && !/[\u0000-\u001f\u007f-\u009f]/.test(value))));
  }

  async function verify(secret, form, nonceStr, raw) {
    const answer = readTexts(raw);
    const fields = { ...answer.data, code: answer.code, nonceStr };
    const expected = await sign(secret, buildStringToSign(form.dataset.path, fields));
    return isPlain(answer, raw) && expected.slice(0, Number(form.dataset.signLength)) === answer.data.sign;
  }

  function makeFields(form) {
    const fields = { appKey: keys.elements.key.value.trim(), timestamp: Date.now() };
    fields.nonceStr = toHex(crypto.getRandomValues(new Uint8Array(16)));
    for (const input of form.elements) {
      if (input.name && input.value !== "") fields[input.name] = input.value;
    }
    return fields;
  }

  function show(form, part, text) {
    const block = form.querySelector(`[data-part="${part}"]`);
    block.textContent = text;
    const box = form.querySelector(`[data-shows-part="${part}"]`);
    box.hidden = text === "";
    box.querySelector("[data-copy]").dataset.copy = text;
  }

  function tell(form, tone, text) {
    const told = form.querySelector("[data-told]");
    told.hidden = text === "";
    told.dataset.tone = tone;
    told.textContent = text;
  }

  async function send(form, secret, fields, body) {
    const headers = { "Content-Type": "application/json" };
    let raw;
    try {
      const response = await fetch(form.dataset.path, { method: "POST", headers, body, credentials: "omit" });
      raw = await response.text();
    } catch {
      tell(form, "bad", form.dataset.nothing);
      return;
    }
    show(form, "answer", raw);
    const answer = JSON.parse(raw);
    if (answer.code !== 200) {
      tell(form, "bad", `${form.dataset.refused}: ${answer.code} ${answer.msg}`);
    } else if (await verify(secret, form, fields.nonceStr, raw)) {
      tell(form, "good", form.dataset.right);
    } else {
      tell(form, "bad", form.dataset.wrong);
    }
  }

  async function call(form, sends) {
    const secret = keys.elements.secret.value.trim();
    for (const part of ["string", "body", "answer"]) show(form, part, "");
    tell(form, "", "");
    if (!window.crypto?.subtle) {
      tell(form, "bad", form.dataset.noCrypto);
      return;
    }
    const fields = makeFields(form);
    if (!fields.appKey || !secret) {
      tell(form, "bad", form.dataset.noKey);
      return;
    }
    const text = buildStringToSign(form.dataset.path, fields);
    fields.sign = await sign(secret, text);
    const body = JSON.stringify(fields, null, 2);
    show(form, "string", text);
    show(form, "body", body);
    if (sends) await send(form, secret, fields, body);
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form === keys) event.preventDefault();
    if (!form.matches("[data-call]")) return;
    event.preventDefault();
    call(form, event.submitter?.value === "send").catch((error) => tell(form, "bad", String(error)));
  });

  // On a small screen the list of what is here would fill the first page.
  if (matchMedia("(max-width: 60rem)").matches) document.querySelector("[data-nav]").open = false;
})();
