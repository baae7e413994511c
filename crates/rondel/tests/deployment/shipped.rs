//! The files of `deploy/` for systemd, Compose, Kubernetes and Helm.

use std::path::{Path, PathBuf};
use std::process::Command;

use saphyr::{LoadableYamlNode as _, Yaml};

use super::support::{Folder, rondel};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(name)
}

fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The node at a path of keys and positions, such as `spec/containers/0`.
#[track_caller]
fn at<'n, 'i>(node: &'n Yaml<'i>, path: &str) -> &'n Yaml<'i> {
    path.split('/').fold(node, |node, key| {
        let found = match key.parse() {
            Ok(position) => node.as_sequence_get(position),
            Err(_) => node.as_mapping_get(key),
        };
        found.unwrap_or_else(|| panic!("no {key} of {path} in {node:?}"))
    })
}

#[track_caller]
fn text<'n>(node: &'n Yaml<'_>, path: &str) -> &'n str {
    at(node, path).as_str().unwrap_or_else(|| panic!("{path} is no text"))
}

/// Checks a deployment whose store is in `/state`.
fn validate(folder: &Folder, deployment: &str, specification: &str) {
    folder.file("demo.rondel", specification);
    assert!(deployment.contains("store: /state/verdicts.db"));
    let deployment = deployment.replace("/state/verdicts.db", "verdicts.db");
    rondel(["validate", &folder.file("rondel.yaml", deployment)]).expect_status(0);
}

/// The value of an option in the arguments, in seconds.
#[track_caller]
fn seconds(text: &str, before: &str) -> u64 {
    let (_, after) = text.split_once(before).unwrap_or_else(|| panic!("no {before} in {text}"));
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn systemd_units_are_hardened() {
    for name in ["rondel.service", "rondel@.service"] {
        let unit = read(folder("systemd").join(name));
        assert!(unit.contains("\nType=notify\n") && unit.contains("\nWatchdogSec="), "{name}");
        // The audit file may take two more seconds.
        assert!(seconds(&unit, "\nTimeoutStopSec=") >= seconds(&unit, "--stop-timeout ") + 3, "{name}");
    }
    // Both have the same rights.
    let rights = |name: &str| {
        let unit = read(folder("systemd").join(name));
        unit.split_once("# No rights of root").unwrap().1.to_owned()
    };
    assert_eq!(rights("rondel.service"), rights("rondel@.service"));
    for name in ["rondel.service", "rondel@.service"] {
        let output = Command::new("systemd-analyze")
            .args(["security", "--offline=true", "--no-pager"])
            .arg(folder("systemd").join(name))
            .output();
        let Ok(output) = output else {
            rondel_testkit::notice("NOT TESTED: systemd-analyze is not installed");
            return;
        };
        let said = String::from_utf8_lossy(&output.stdout);
        let Some((_, level)) = said.split_once("Overall exposure level for ") else {
            // Before systemd 250 there is no `--offline`.
            rondel_testkit::notice("NOT TESTED: systemd-analyze does not analyse files");
            return;
        };
        let level: f64 = level.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(level < 2.0, "{name}: {level}\n{said}");
    }
}

#[test]
fn composition_is_reachable_from_this_machine_only() {
    let compose = folder("compose");
    let source = read(compose.join("compose.yaml"));
    let document = Yaml::load_from_str(&source).unwrap().remove(0);
    let mut ports = 0;
    for service in ["rondel", "state", "prometheus", "grafana"] {
        let service = at(&document, &format!("services/{service}"));
        for position in 0.. {
            let Some(port) =
                service.as_mapping_get("ports").and_then(|ports| ports.as_sequence_get(position))
            else {
                break;
            };
            assert!(port.as_str().unwrap().starts_with("127.0.0.1:"), "{port:?}");
            ports += 1;
        }
        for position in 0.. {
            let volumes = service.as_mapping_get("volumes");
            let Some(volume) = volumes.and_then(|volumes| volumes.as_sequence_get(position)) else { break };
            let (file, _) = volume.as_str().unwrap().split_once(':').unwrap();
            if file.starts_with('.') {
                assert!(compose.join(file).is_file(), "{file}");
            } else {
                at(&document, &format!("volumes/{file}"));
            }
        }
    }
    assert_eq!(ports, 3);
    let grace = text(&document, "services/rondel/stop_grace_period");
    assert!(seconds(&format!("={grace}"), "=") >= seconds(&source, "--stop-timeout=") + 3);
    validate(&Folder::new(), &read(compose.join("rondel.yaml")), &read(compose.join("demo.rondel")));
}

#[test]
fn kubernetes_manifest_has_the_required_fields() {
    let source = read(folder("kubernetes/rondel.yaml"));
    let documents = Yaml::load_from_str(&source).unwrap();
    let kinds: Vec<(&str, &str)> =
        documents.iter().map(|document| (text(document, "apiVersion"), text(document, "kind"))).collect();
    let expected =
        [("v1", "ConfigMap"), ("v1", "PersistentVolumeClaim"), ("apps/v1", "Deployment"), ("v1", "Service")];
    assert_eq!(kinds, expected);
    let [configuration, claim, deployment, service] = documents.as_slice() else { panic!("{kinds:?}") };
    for document in &documents {
        assert!(text(document, "metadata/name").starts_with("rondel"));
    }
    validate(
        &Folder::new(),
        text(configuration, "data/rondel.yaml"),
        text(configuration, "data/demo.rondel"),
    );
    assert_eq!(text(claim, "spec/accessModes/0"), "ReadWriteOnce");
    text(claim, "spec/resources/requests/storage");

    assert_eq!(at(deployment, "spec/replicas").as_integer(), Some(1));
    assert_eq!(text(deployment, "spec/strategy/type"), "Recreate");
    let labelled =
        |path| at(deployment, path).as_mapping_get("app.kubernetes.io/name").and_then(Yaml::as_str);
    assert_eq!(labelled("spec/selector/matchLabels"), Some("rondel"));
    assert_eq!(labelled("spec/template/metadata/labels"), Some("rondel"));
    let pod = at(deployment, "spec/template/spec");
    assert_eq!(at(pod, "securityContext/runAsNonRoot").as_bool(), Some(true));
    assert_eq!(text(pod, "securityContext/seccompProfile/type"), "RuntimeDefault");
    let grace = at(pod, "terminationGracePeriodSeconds").as_integer().unwrap();
    assert!(grace >= i64::try_from(seconds(&source, "--stop-timeout=")).unwrap() + 3);
    let container = at(pod, "containers/0");
    text(container, "name");
    text(container, "image");
    assert_eq!(at(container, "securityContext/readOnlyRootFilesystem").as_bool(), Some(true));
    assert_eq!(at(container, "securityContext/allowPrivilegeEscalation").as_bool(), Some(false));
    assert_eq!(text(container, "securityContext/capabilities/drop/0"), "ALL");
    let probes = [("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")];
    for (probe, path) in probes {
        assert_eq!(text(container, &format!("{probe}/httpGet/path")), path);
        assert_eq!(text(container, &format!("{probe}/httpGet/port")), "metrics");
    }
    for position in 0..2 {
        let name = text(container, &format!("volumeMounts/{position}/name"));
        assert_eq!(name, text(pod, &format!("volumes/{position}/name")));
        let port = text(container, &format!("ports/{position}/name"));
        assert_eq!(port, text(service, &format!("spec/ports/{position}/targetPort")));
        assert_eq!(
            at(container, &format!("ports/{position}/containerPort")).as_integer(),
            at(service, &format!("spec/ports/{position}/port")).as_integer()
        );
    }
    assert_eq!(
        text(pod, "volumes/1/persistentVolumeClaim/claimName"),
        text(claim, "metadata/name"),
        "the volume of the state"
    );
}

/// By the schemas of the API, which the package contains; unknown fields are refused.
#[test]
fn kubernetes_manifest_fits_the_schemas() {
    let Some(python) = rondel_testkit::python("kubernetes_manifest_fits_the_schemas", "kubernetes_validate")
    else {
        return;
    };
    let script = "import sys, yaml, kubernetes_validate as k\n\
                  for document in yaml.safe_load_all(open(sys.argv[1])):\n    \
                  k.validate(document, '1.37', strict=True)\n";
    let output =
        Command::new(python).args(["-c", script]).arg(folder("kubernetes/rondel.yaml")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn chart_has_the_version_of_the_workspace_and_a_valid_deployment() {
    let source = read(folder("helm/rondel/Chart.yaml"));
    let chart = Yaml::load_from_str(&source).unwrap().remove(0);
    assert_eq!(text(&chart, "version"), env!("CARGO_PKG_VERSION"));
    assert_eq!(text(&chart, "appVersion"), env!("CARGO_PKG_VERSION"));
    let source = read(folder("helm/rondel/values.yaml"));
    let values = Yaml::load_from_str(&source).unwrap().remove(0);
    let files = Folder::new();
    files.file("specification.rondel", text(&values, "config/specification"));
    // The name of the specification is another one than in the manifest.
    validate(&files, text(&values, "config/deployment"), "");
}

/// `make test-helm` renders the chart, too.
#[test]
fn values_of_the_chart_fit_their_schema() {
    let Some(python) = rondel_testkit::python("values_of_the_chart_fit_their_schema", "jsonschema, yaml")
    else {
        return;
    };
    let script = "import json, pathlib, sys, yaml, jsonschema\n\
                  chart = pathlib.Path(sys.argv[1])\n\
                  schema = json.loads((chart / 'values.schema.json').read_text())\n\
                  jsonschema.Draft7Validator.check_schema(schema)\n\
                  check = jsonschema.Draft7Validator(schema).validate\n\
                  values = yaml.safe_load((chart / 'values.yaml').read_text())\n\
                  check(values)\n\
                  assert values.keys() == schema['properties'].keys() - {'global'}\n\
                  examples = sorted((chart / 'ci').glob('*.yaml'))\n\
                  assert len(examples) >= 4\n\
                  for example in examples:\n    \
                  check(yaml.safe_load(example.read_text()))\n";
    let output = Command::new(python).args(["-c", script]).arg(folder("helm/rondel")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
