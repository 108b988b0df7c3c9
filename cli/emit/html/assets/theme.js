'use strict';
// Light or dark: as the system prefers until the button is pressed.
(() => {
const button = document.getElementById('theme');
const dark = () => (document.documentElement.dataset.theme ||
                    (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
const name = () => { button.textContent = dark() ? 'Light' : 'Dark'; };
button.onclick = () => { document.documentElement.dataset.theme = dark() ? 'light' : 'dark'; name(); };
name();
})();
