//! A server on this machine, in a folder of its own, and questions to it.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rondel_sinks::postgres::{PostgresOptions, PostgresSink};
use rondel_sinks::{Entry, Sink, Written};
use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::support::LIMIT;

/// A server. Its superuser is `admin`, its password `secret`. It ends with this value.
pub(crate) struct Server {
    folder: PathBuf,
    port: u16,
    child: Option<Child>,
    /// Settings beside the usual ones.
    settings: Vec<String>,
}

/// Returns the folder of the programs: of `RONDEL_TEST_POSTGRES`, or the newest of Debian's packages.
fn programs() -> PathBuf {
    if let Some(folder) = std::env::var_os("RONDEL_TEST_POSTGRES") {
        return folder.into();
    }
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()).max();
    let newest = newest
        .expect("no server: run `scripts/setup features`, or set RONDEL_TEST_POSTGRES to its bin folder");
    format!("/usr/lib/postgresql/{newest}/bin").into()
}

/// Returns user and group of the server: it refuses to run as the superuser.
fn unprivileged() -> Option<(u32, u32)> {
    use std::os::unix::fs::MetadataExt;
    if std::fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let id = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2).map(|number| number.parse().unwrap());
        Some((numbers.next()?, numbers.next()?))
    };
    Some(id("postgres").or_else(|| id("daemon")).unwrap())
}

impl Server {
    pub(crate) fn start() -> Server {
        Server::start_with(&[])
    }

    /// Starts a server with further settings, such as `ssl=on`.
    pub(crate) fn start_with(settings: &[&str]) -> Server {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("rondel-pg-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let port = rondel_testkit::free_port();
        let settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        let mut server = Server { folder, port, child: None, settings };
        server.write("password", "secret");
        if let Some((user, group)) = unprivileged() {
            std::os::unix::fs::chown(&server.folder, Some(user), Some(group)).unwrap();
        }
        let password = format!("--pwfile={}", server.folder.join("password").display());
        let made = (server.command("initdb"))
            .args(["--no-sync", "--encoding=UTF8", "--locale=C", "--username=admin", "--auth=scram-sha-256"])
            .args([&password, "-D"])
            .arg(server.data())
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        server.resume();
        server
    }

    /// Writes a file that only the server reads, and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        if let Some((user, group)) = unprivileged() {
            std::os::unix::fs::chown(&path, Some(user), Some(group)).unwrap();
        }
        path
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn command(&self, program: &str) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(programs().join(program));
        command.current_dir(&self.folder).env("LC_ALL", "C").stdin(Stdio::null());
        if let Some((user, group)) = unprivileged() {
            command.uid(user).gid(group);
        }
        command
    }

    /// Starts the server in its folder, and waits until it answers.
    pub(crate) fn resume(&mut self) {
        let mut command = self.command("postgres");
        let log = std::fs::File::options().create(true).append(true).open(self.folder.join("log")).unwrap();
        command.arg("-D").arg(self.data()).args(["-p", &self.port.to_string()]);
        let folder = format!("unix_socket_directories={}", self.folder.display());
        // A crash of the machine is not tested.
        for setting in ["listen_addresses=127.0.0.1", "max_connections=20", "fsync=off", &folder]
            .into_iter()
            .chain(self.settings.iter().map(String::as_str))
        {
            command.args(["-c", setting]);
        }
        self.child = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let begun = Instant::now();
        while let Err(error) = self.try_query("postgres", "SELECT 1") {
            let has_ended = self.child.as_mut().unwrap().try_wait().unwrap().is_some();
            if has_ended || begun.elapsed() > Duration::from_secs(120) {
                let log = std::fs::read_to_string(self.folder.join("log")).unwrap();
                panic!("the server does not answer: {error}\n{log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the server: `fast` ends connections in order, `immediate` is a crash.
    pub(crate) fn stop(&mut self, mode: &str) {
        let Some(mut child) = self.child.take() else { return };
        let stopped =
            self.command("pg_ctl").arg("stop").arg("-D").arg(self.data()).args(["-m", mode, "-w"]).output();
        if !stopped.is_ok_and(|output| output.status.success()) {
            let _ = child.kill();
        }
        child.wait().unwrap();
    }

    /// Offers TLS from the next start on, with the files `ca.crt`, `server.crt` and `server.key` and rules like those of
    /// `pg_hba.conf`.
    pub(crate) fn encrypt(&mut self, rules: &std::path::Path) {
        let file = |setting: &str, path: PathBuf| format!("{setting}={}", path.display());
        self.settings.extend([
            "ssl=on".to_owned(),
            file("ssl_ca_file", self.folder.join("ca.crt")),
            file("ssl_cert_file", self.folder.join("server.crt")),
            file("ssl_key_file", self.folder.join("server.key")),
            file("hba_file", rules.to_owned()),
        ]);
    }

    /// Returns the URL of a database for the superuser, without password.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgresql://admin@127.0.0.1:{}/{database}", self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn options(&self) -> PostgresOptions {
        PostgresOptions {
            url: self.url("postgres"),
            password: Some("secret".to_owned()),
            ..PostgresOptions::default()
        }
    }

    pub(crate) fn sink(&self) -> PostgresSink {
        PostgresSink::new(self.options()).unwrap()
    }

    /// Runs statements as the superuser, and returns the rows of all, their columns separated by commas.
    pub(crate) fn query(&self, sql: &str) -> Vec<String> {
        self.try_query("postgres", sql).unwrap()
    }

    pub(crate) fn try_query(&self, database: &str, sql: &str) -> Result<Vec<String>, String> {
        let rows = self.rows(database, sql).map_err(|error| format!("{error:?}"))?;
        Ok(rows.iter().map(|row| row.join(",")).collect())
    }

    /// Runs statements as the superuser, and returns the columns of all rows.
    pub(crate) fn rows(&self, database: &str, sql: &str) -> Result<Vec<Vec<String>>, tokio_postgres::Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        // Over its socket, also where connections over TCP are encrypted.
        let mut config = tokio_postgres::Config::new();
        config.host_path(&self.folder).port(self.port).dbname(database).user("admin").password("secret");
        config.connect_timeout(LIMIT).options("-c search_path=rondel");
        runtime.block_on(async {
            let (client, connection) = config.connect(NoTls).await?;
            let task = tokio::spawn(connection);
            let messages = client.simple_query(sql).await?;
            drop(client);
            let _ = task.await;
            let rows = messages.into_iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row),
                _ => None,
            });
            let cells = |row: tokio_postgres::SimpleQueryRow| {
                (0..row.len()).map(|i| row.get(i).unwrap_or_default().to_owned()).collect()
            };
            Ok(rows.map(cells).collect())
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop("immediate");
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

pub(crate) fn write(sink: &mut PostgresSink, entries: &[Entry<'_>]) -> Written {
    sink.write(entries, LIMIT).unwrap()
}
