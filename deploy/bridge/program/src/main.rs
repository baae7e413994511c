//! Eclipse's bridge between DDS and Zenoh, from its plugin: `dds-bridge -c FILE`, where the file is what its image takes by the same option.

use std::error::Error;

use zenoh::Config;
use zenoh::internal::plugins::PluginsManager;
use zenoh::internal::runtime::RuntimeBuilder;
use zenoh_plugin_dds::DDSPlugin;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    zenoh::init_log_from_env_or("warn");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [option, file] = &arguments[..] else { return Err("usage: dds-bridge -c FILE".into()) };
    if option != "-c" {
        return Err("usage: dds-bridge -c FILE".into());
    }
    let mut config = Config::from_file(file)?;
    // As the bridge of the image does: what a reader missed is kept by the time at which it was published.
    config.insert_json5("timestamping/enabled", "true")?;

    let mut plugins = PluginsManager::static_plugins_only();
    plugins.declare_static_plugin::<DDSPlugin, _>("dds", true);
    let mut runtime = RuntimeBuilder::new(config).plugins_manager(plugins).build().await?;
    runtime.start().await?;
    // The plugin does the rest, until a signal ends the program.
    std::future::pending().await
}
