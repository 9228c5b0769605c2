// A button that copies the command beside it.

export function copying(root: ParentNode = document): void {
  for (const button of root.querySelectorAll<HTMLButtonElement>(".copy")) {
    const code = button.parentElement?.querySelector("code");
    if (code) {
      button.hidden = false;
      button.setAttribute("aria-live", "polite");
      button.addEventListener("click", () => void copy(button, code));
    }
  }
}

async function copy(button: HTMLButtonElement, code: HTMLElement): Promise<void> {
  let copied = true;
  try {
    await navigator.clipboard.writeText(code.textContent ?? "");
  } catch {
    // A page opened from a file may be refused: then the reader copies what is selected.
    getSelection()?.selectAllChildren(code);
    copied = false;
  }
  button.textContent = copied ? "Copied" : "Selected: press Ctrl+C";
  setTimeout(() => (button.textContent = "Copy"), 2500);
}
