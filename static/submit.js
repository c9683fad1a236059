// The progress of an upload. Without this the form is sent as it is, and the browser shows what it shows of that.
"use strict";

(() => {
  const form = document.getElementById("deposit");
  if (!form || !form.enctype) return;
  const [bar, said, button] = [document.getElementById("sent"), document.getElementById("said"), form.querySelector("button")];

  form.addEventListener("submit", (event) => {
    const file = form.elements.file?.files?.[0];
    if (!file) return;
    event.preventDefault();
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.upload.addEventListener("progress", (sent) => {
      if (sent.lengthComputable) bar.value = sent.loaded / sent.total;
      said.textContent = `${Math.floor(bar.value * 100)} %`;
    });
    const end = (text) => {
      [bar.hidden, button.disabled, said.textContent] = [true, false, text];
    };
    request.addEventListener("load", () => {
      if (request.status < 400 && request.responseURL !== form.action) return location.assign(request.responseURL);
      const answer = new DOMParser().parseFromString(request.responseText, "text/html");
      end(answer.querySelector("[role=alert], main p")?.textContent ?? `The server answered ${request.status}.`);
    });
    request.addEventListener("error", () => end("The upload was interrupted. Try again."));
    [bar.hidden, bar.value, button.disabled, said.textContent] = [false, 0, true, "0 %"];
    request.send(new FormData(form));
  });
})();
