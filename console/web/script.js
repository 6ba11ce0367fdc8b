"use strict";
// Replaces the parts of the page that change, every two seconds while somebody looks. Forms stay as they are.
(() => {
  const every = 2000, quiet = 20000; // ms; a screen reader gets a new summary at most each `quiet`
  const pause = document.getElementById("pause"), away = document.getElementById("away"), said = document.getElementById("said");
  const address = new URL(location.href);
  address.searchParams.set("fragment", "1");
  let timer, saidAt = 0, paused = false;

  function replace(part, fresh) {
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const scrolled = [...part.querySelectorAll(".scroll")].map((s) => [s.id, s.scrollLeft]);
    part.replaceChildren(...fresh.childNodes);
    for (const [id, left] of scrolled) {
      const region = document.getElementById(id);
      if (region) region.scrollLeft = left;
    }
    if (!focused) return;
    const region = focused.closest(".scroll");
    const again = [focused, region].map((e) => e && e.id && document.getElementById(e.id)).find(Boolean);
    (again || document.getElementById("main")).focus({ preventScroll: true });
  }

  function show(text) {
    const page = new DOMParser().parseFromString(text, "text/html");
    const fresh = [...page.querySelectorAll("[data-live]")];
    if (fresh.length === 0) throw new Error("no page of the console");
    const selection = getSelection();
    for (const part of fresh) {
      const old = document.getElementById(part.id);
      const isMarked = !selection.isCollapsed && selection.containsNode(old, true);
      if (old && !isMarked && old.innerHTML !== part.innerHTML) replace(old, part);
    }
    const summary = page.querySelector("[data-said]").dataset.said;
    if (summary && summary !== said.textContent && Date.now() - saidAt > quiet) {
      saidAt = Date.now();
      said.textContent = summary;
    }
    const seen = document.querySelector("[data-leases]");
    const isStale = [...document.querySelectorAll("form[data-seen]")].some((f) => !seen || f.dataset.seen !== seen.dataset.leases);
    document.querySelectorAll("[data-stale]").forEach((e) => { e.hidden = !isStale; });
  }

  async function poll() {
    clearTimeout(timer);
    if (paused || document.visibilityState !== "visible") return;
    try {
      const answer = await fetch(address, { headers: { Accept: "text/html" }, redirect: "error" });
      show(await answer.text());
      away.hidden = true;
    } catch {
      away.hidden = false;
    }
    clearTimeout(timer);
    timer = setTimeout(poll, every);
  }

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    poll();
  });
  document.addEventListener("visibilitychange", poll);
  timer = setTimeout(poll, every);
})();
