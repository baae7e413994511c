// Starts the language server `rondel lsp` and connects the editor with it.

const vscode = require("vscode");

let client;

async function start() {
  let library;
  try {
    library = require("vscode-languageclient/node");
  } catch {
    // Colours work without the client.
    return;
  }
  const settings = vscode.workspace.getConfiguration("rondel");
  const schemas = settings.get("schemas", []).flatMap((path) => ["--schemas", path]);
  const recordings = settings.get("recordings", []).flatMap((path) => ["--recording", path]);
  const command = settings.get("command", "rondel");
  const server = { command, args: ["lsp", ...schemas, ...recordings] };
  client = new library.LanguageClient("rondel", "Rondel", server, {
    documentSelector: [{ language: "rondel" }],
  });
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const reason = error instanceof Error ? error.message : String(error);
    vscode.window.showErrorMessage(
      `Rondel: \`${command} lsp\` does not start, so there are colours only. ` +
        `The setting rondel.command names the program. (${reason})`,
    );
  }
}

async function stop() {
  const running = client;
  client = undefined;
  await running?.stop();
}

exports.activate = async function (context) {
  context.subscriptions.push(
    vscode.workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("rondel")) {
        await stop();
        await start();
      }
    }),
  );
  await start();
};

exports.deactivate = stop;
