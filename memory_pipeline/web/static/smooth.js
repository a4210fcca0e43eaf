// Makes pages smoother; everything works without it. A form that was sent says that it is under way, and is sent once.
"use strict";

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "yes";
  const status = document.createElement("p");
  status.setAttribute("role", "status");
  status.className = "under-way";
  status.textContent = "Under way…";
  form.append(status);
});

// A page that comes back from the browser's history may be sent again.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    form.querySelector(".under-way")?.remove();
  }
});
