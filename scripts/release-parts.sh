# The parts of scripts/release, which sources this file: each function makes its files in $out and checks
# them. It runs in a process of its own, and its first failing command ends it.

fail() { # what is wrong
    say "$part_name: $*"
    exit 1
}
part_name=${2:-}
in_test=${RONDEL_RELEASE_PROGRAM:+yes} # the program is not optimised, and large

# says_version COMMAND...: check that a program says the version of this release.
says_version() {
    local said
    said=$("$@" --version) || fail "$1 does not start"
    [[ $said == "rondel $version "* ]] || fail "$* says '$said', not $version"
}

# smaller FILE MEGABYTES: check that a file does not outgrow what is documented.
smaller() {
    local bytes
    bytes=$(stat -c %s "$1")
    ((bytes > 1000 && (${#in_test} || bytes < $2 * 1000000))) || fail "$1 has $((bytes / 1000)) kB, expected at most $2 MB"
}

# --- the program of the packages

make_program() {
    if [[ -n $in_test ]]; then
        install -m 755 "$RONDEL_RELEASE_PROGRAM" "$work/rondel"
        strip "$work/rondel"
    else
        cargo auditable build --release --locked --package rondel
        install -m 755 "$target/release/rondel" "$work/rondel"
        lists_dependencies "$work/rondel"
        smaller "$work/rondel" 60
    fi
    says_version "$work/rondel"
}

# Check that the program contains the list of its dependencies, which `cargo audit bin` and others read.
lists_dependencies() {
    rm -f "$work/dependencies"
    "${OBJCOPY:-objcopy}" --dump-section ".dep-v0=$work/dependencies" "$1" "$work/unused"
    rm -f "$work/unused"
    [[ -s $work/dependencies ]] || fail "$1 does not list its dependencies"
    python3 - "$work/dependencies" "$version" <<'END'
import json, sys, zlib
packages = json.loads(zlib.decompress(open(sys.argv[1], "rb").read()))["packages"]
own = [p["version"] for p in packages if p["name"] == "rondel"]
sys.exit(0 if own == [sys.argv[2]] and len(packages) > 100 else f"the program lists {len(packages)} packages, rondel {own}")
END
}

# --- licences and dependencies

# The wheels have further features, and a module. Licences and components are those of all programs.
features_of_wheel() { sed -n 's/^FEATURES = "\(.*\)"$/\1/p' scripts/wheel | grep .; }

make_licences() {
    local file=$out/${files[licences]}
    if [[ -n $in_test ]]; then
        echo "# Licences of libraries: left out in a test" >"$file"
        return
    fi
    cargo fetch --locked
    deploy/packages/licences "$(features_of_wheel)" >"$work/licences.md"
    mv "$work/licences.md" "$file"
    local name
    for name in "- zenoh " "- rustls " "- serde " "- parquet " "- pyo3 " "Eclipse Cyclone DDS"; do
        grep -q -e "$name" "$file" || fail "$file does not name ${name#- }"
    done
    smaller "$file" 3
}

make_sbom() {
    local file=$out/${files[sbom]} name=rondel-sbom
    # It writes a file into the folder of every crate.
    trap 'rm -f crates/*/rondel-sbom.json fuzz/rondel-sbom.json' EXIT
    cargo cyclonedx --manifest-path crates/rondel/Cargo.toml --format json --spec-version 1.5 --target "$machine-unknown-linux-gnu" \
        --features "$(features_of_wheel)" --override-filename $name
    python3 - crates/rondel/$name.json crates/rondel-python/$name.json "$file" "$version" "$PWD" <<'END'
import json, re, sys
source, of_module, file, version, root = sys.argv[1:]

def read(path):
    # Crates of this repository are named by the path of the sources on this machine.
    return json.loads(open(path).read().replace(f"path+file://{root}/", "path:").replace(f"file://{root}/", "file:"))

bom, module = read(source), read(of_module)
component = bom["metadata"]["component"]
# The module of the wheels, and what only it depends on.
known = {other["bom-ref"] for other in bom["components"]}
bom["components"] += [other for other in [module["metadata"]["component"], *module["components"]] if other["bom-ref"] not in known]
known = {other["ref"]: other for other in bom["dependencies"]}
for other in module["dependencies"]:
    # A crate may have other features in the module.
    of = known.setdefault(other["ref"], {"ref": other["ref"]})
    if needed := {*of.get("dependsOn", []), *other.get("dependsOn", [])}:
        of["dependsOn"] = sorted(needed)
bom["dependencies"] = list(known.values())
wrong = []
if (component["name"], component["version"]) != ("rondel", version):
    wrong.append(f"it describes {component['name']} {component['version']}")
names = {other["name"] for other in bom["components"]}
if len(names) < 100 or not names >= {"zenoh", "parquet", "rondel-python", "pyo3"}:
    wrong.append(f"it has {len(names)} components, {sorted(names)[:10]} and more")
references = [component["bom-ref"], *(other["bom-ref"] for other in bom["components"])]
if len(references) != len(set(references)) or not known.keys() <= set(references):
    wrong.append("a component is missing, or comes twice")
text = json.dumps(bom, indent=1)
if root in text or re.search(r'"[^"]*/(home|root)/', text):
    wrong.append("it names folders of this machine")
if wrong:
    sys.exit("the list of components is wrong: " + ", ".join(wrong))
open(file, "w").write(text + "\n")
END
    smaller "$file" 5
}

# --- packages

package_tree() { PREFIX=/usr scripts/package-tree "$work/rondel" out/package "$out/${files[licences]}"; }

# Files in a package that are not in out/package, or the other way round.
differs() { # the list of paths in the package
    diff <(cd out/package && find . -type f | sed 's|^\.||' | sort) <(sort)
}

make_deb() {
    local file=$out/${files[deb]}
    package_tree
    cargo deb --no-build --no-strip ${in_test:+--fast} --package rondel --output "$(realpath --canonicalize-missing "$file")"
    [[ $(dpkg-deb --field "$file" Version) == "$version-1" ]] || fail "the package has the version $(dpkg-deb --field "$file" Version)"
    dpkg-deb --contents "$file" | awk '!/^d/ { print substr($6, 2) }' |
        sed -e 's|\(/man/.*\)\.gz$|\1|' -e '/^\/usr\/share\/doc\/rondel\/copyright$/d' | differs || fail "the package has other files than out/package"
    local library
    library=$(dpkg-deb --field "$file" Depends | sed -n 's/.*libc6 (>= \([0-9.]*\)).*/\1/p')
    dpkg --compare-versions "${library:-none}" le 2.36 || fail "the program needs glibc $library; docs/how-to/install.md says 2.36"
    dpkg-deb --info "$file" conffiles | grep -qx /etc/rondel/environment || fail "/etc/rondel/environment is no configuration file"
    dpkg-deb --fsys-tarfile "$file" | tar -xOf - ./usr/bin/rondel >"$work/unpacked"
    chmod +x "$work/unpacked"
    says_version "$work/unpacked"
    smaller "$file" 30
}

make_rpm() {
    local file=$out/${files[rpm]}
    package_tree
    cargo generate-rpm ${in_test:+--payload-compress none} --package crates/rondel --output "$(realpath --canonicalize-missing "$file")"
    [[ $(rpm --query --package --queryformat '%{VERSION}-%{RELEASE}' "$file") == "$version-1" ]] || fail "the package has another version"
    rpm --query --package --list --verbose "$file" | awk '!/^d/ { print $NF }' | differs || fail "the package has other files than out/package"
    rpm --query --package --configfiles "$file" | grep -qx /etc/rondel/environment || fail "/etc/rondel/environment is no configuration file"
    rpm --checksig --nosignature "$file"
    smaller "$file" 30
}

# --- archives with a static program, to be unpacked in /usr/local

make_archive() {
    if [[ -n $in_test ]]; then
        archive "$work/rondel" "${files[archive]}"
        return
    fi
    # As in the Dockerfile. Naming the target exempts build scripts and macros.
    RUSTFLAGS="-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs" \
        cargo auditable build --release --locked --package rondel --target "$machine-unknown-linux-gnu"
    local program=$target/$machine-unknown-linux-gnu/release/rondel
    is_static "$program"
    lists_dependencies "$program"
    archive "$program" "${files[archive]}"
}

make_archive_aarch64() {
    [[ -z $in_test ]] || fail "no program for aarch64 was built"
    local rust=aarch64-unknown-linux-gnu
    RUSTFLAGS="-C target-feature=+crt-static" scripts/cross aarch64 cargo auditable build --release --locked --package rondel --target $rust
    local program=$target/$rust/release/rondel
    is_static "$program"
    OBJCOPY=aarch64-linux-gnu-objcopy lists_dependencies "$program"
    export WRITER=$PWD/$work/rondel
    archive "$program" "${files[archive-aarch64]}" qemu-aarch64
}

is_static() { # program
    ! readelf --program-headers --wide "$1" | grep -q INTERP || fail "$1 loads libraries"
}

# archive PROGRAM FILE [EMULATOR]: pack a program with its files, and check a recording with it.
archive() {
    local tree=$work/archive name=${2%.tar.gz}
    PREFIX=/usr/local scripts/package-tree "$1" "$tree" "$out/${files[licences]}"
    rm -rf "${work:?}/$name"
    mv "$tree/usr/local" "$work/$name"
    # Files only: unpacking leaves the rights of folders that exist, such as /usr/local/share, as they are.
    (cd "$work" && find "$name" -type f -print0 | sort -z) |
        tar -C "$work" --null --files-from - --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - | gzip -n "$([[ -z $in_test ]] && echo --best || echo --fast)" >"$out/$2"
    rm -rf "${work:?}/$name" "$tree"
    mkdir "$tree"
    tar -C "$tree" --strip-components=1 -xzf "$out/$2"
    says_version ${3:-} "$tree/bin/rondel"
    local status=0
    ${3:-} "$tree/bin/rondel" check examples/vehicle.rondel examples/vehicle.jsonl >"$work/checked" || status=$?
    grep -q '^violated  *gear_change_at_standstill' "$work/checked" && [[ $status == 1 ]] || fail "the program does not check examples/vehicle.jsonl"
    ${3:-} "$tree/bin/rondel" demo >"$work/demo" 2>&1 || fail "the demo ends with status $?: $(tail -n 3 "$work/demo")"
    smaller "$out/$2" 30
}

# --- the Python package and the image

make_wheel() {
    rm -f "$out"/rondel-*_"$machine".whl
    make wheel LICENCES="$out/${files[licences]}"
    cp out/wheels/rondel-"$version"-*_"$machine".whl "$out/"
    rm -rf "$work/venv"
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$(file_of wheel)"
    [[ $("$work/venv/bin/python" -c 'import importlib.metadata as m; print(m.version("rondel"))') == "$version" ]] || fail "the package has another version"
    "$work/venv/bin/python" -c 'import rondel; rondel.Monitor("topic t { x: float } property p = t.x < 3")'
    says_version "$work/venv/bin/rondel"
    cmp "$work/venv/share/doc/rondel/LICENCES-OF-LIBRARIES.md" "$out/${files[licences]}"
    smaller "$(file_of wheel)" 30
}

# `make wheel` tries it in the emulator.
make_wheel_aarch64() {
    [[ -z $in_test ]] || fail "no program for aarch64 was built"
    rm -f "$out"/rondel-*_aarch64.whl
    make wheel MACHINE=aarch64 LICENCES="$out/${files[licences]}"
    cp out/wheels/rondel-"$version"-*_aarch64.whl "$out/"
    python3 -m zipfile --list "$(file_of wheel-aarch64)" | grep -q 'share/doc/rondel/LICENCES-OF-LIBRARIES.md ' || fail "the wheel has no licences"
    smaller "$(file_of wheel-aarch64)" 30
}

make_image() {
    docker version >/dev/null 2>&1 || trap 'scripts/docker-engine stop' EXIT
    scripts/image
    # The licences of its libraries, as a second layer.
    rm -rf "$work/image"
    mkdir "$work/image"
    cp "$out/${files[licences]}" "$work/image/LICENCES-OF-LIBRARIES.md"
    printf 'FROM rondel\nCOPY LICENCES-OF-LIBRARIES.md /\n' >"$work/image/Dockerfile"
    docker build --tag "rondel:$version" "$work/image"
    says_version docker run --rm --read-only --network none "rondel:$version"
    docker save "rondel:$version" | gzip -9n >"$out/${files[image]}"
    smaller "$out/${files[image]}" 30
}

# --- the crates, which are private: a copy in which they are public would be published

make_crates() {
    [[ -z $in_test ]] || fail "crates are compiled, not packed from a program"
    local tree
    tree=$(mktemp -d "$(realpath "$work")/crates.XXXXXX")
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$tree'" EXIT
    git ls-files -z | tar --null --files-from - -cf - | tar -C "$tree" -xf -
    sed -i '/^\[workspace.package\]/,/^\[/ s/^publish = false$/publish = true/' "$tree/Cargo.toml"
    # Each crate is compiled from the files that it packs, without debug information, which takes gigabytes.
    (cd "$tree" && CARGO_TARGET_DIR=$tree/target CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0 \
        cargo publish --workspace --dry-run --locked) 2>&1 | tee "$work/publish.log"
    local crate packed
    sed -n 's/^ *Uploading \(rondel[^ ]*\) v.*/\1/p' "$work/publish.log" | sort >"$work/packed"
    for crate in crates/*/; do
        crate=$(basename "$crate")
        grep -q '^publish.workspace = true' "crates/$crate/Cargo.toml" || continue
        grep -qx "$crate" "$work/packed" || fail "$crate is not published"
    done
    mv "$work/packed" "$out/${files[crates]}"
}

# --- checksums and signature

make_sums() {
    (cd "$out" && find . -maxdepth 1 -type f ! -name 'SHA256SUMS*' ! -name rondel-signers -printf '%P\n' | sort | xargs -d '\n' sha256sum) >"$work/sums"
    [[ -s $work/sums ]] || fail "there are no files yet"
    mv "$work/sums" "$out/SHA256SUMS"
    (cd "$out" && sha256sum --check --quiet SHA256SUMS)
}

make_signature() {
    local key=${RONDEL_RELEASE_KEY:-}
    [[ -r $key ]] || fail "RONDEL_RELEASE_KEY names no key: make one by ssh-keygen -t ed25519 -f KEY"
    rm -f "$out/SHA256SUMS.sig"
    ssh-keygen -q -Y sign -f "$key" -n rondel-release "$out/SHA256SUMS"
    local public
    public=$(cut -d ' ' -f 1,2 "$key.pub" 2>/dev/null || ssh-keygen -y -f "$key" | cut -d ' ' -f 1,2)
    echo "rondel namespaces=\"rondel-release\" $public" >"$out/rondel-signers"
    ssh-keygen -Y verify -f "$out/rondel-signers" -I rondel -n rondel-release -s "$out/SHA256SUMS.sig" <"$out/SHA256SUMS"
}
