// Sets the chosen theme before the first frame; a classic script, because modules run after it.
{
  let theme = null;
  try {
    theme = localStorage.getItem("rondel.theme");
  } catch {
    // Storage is forbidden: the system's colours.
  }
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
}
