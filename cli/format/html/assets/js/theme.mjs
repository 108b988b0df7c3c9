// Light or dark: as the system prefers until the button is pressed.

// The theme that is not shown, which the button is named after.
export const otherTheme = (chosen, systemIsDark) => (chosen || (systemIsDark ? 'dark' : 'light')) === 'dark' ? 'light' : 'dark';

export const startTheme = () => {
  const button = document.getElementById('theme'), {dataset} = document.documentElement;
  if (!button) return;
  const other = () => otherTheme(dataset.theme, matchMedia('(prefers-color-scheme: dark)').matches);
  const name = () => { button.textContent = other() === 'dark' ? 'Dark' : 'Light'; };
  button.onclick = () => {
    dataset.theme = other();
    name();
  };
  name();
};
