// Makes pages smoother; everything works without it. A form that was sent says that it is under way, and is sent once.
"use strict";

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") {
    withoutBlanks(form);
    return;
  }
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

// An address holds only what was asked for.
function withoutBlanks(form) {
  const blank = [...form.elements].filter((field) => field.name && field.value === "");
  for (const field of blank) field.disabled = true;
  setTimeout(() => { for (const field of blank) field.disabled = false; });
}

// Whoever stops a page from loading goes on with what they typed, and may send it again.
document.addEventListener("input", (event) => again(event.target.form));

function again(form) {
  if (!form?.dataset.sent) return;
  delete form.dataset.sent;
  form.querySelector(".under-way")?.remove();
}

// A page that comes back from the browser's history may be sent again.
window.addEventListener("pageshow", () => {
  document.querySelectorAll("form[data-sent]").forEach(again);
});
