# Functions shared by the scripts of this folder; sourced, not run.

say() { printf '==> %s\n' "$*" >&2; }

die() {
    say "$*"
    exit 1
}

as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        die "root is required, and sudo is missing; run as root: $*"
    fi
}

# Install Debian packages, after listing them.
install_packages() {
    command -v apt-get >/dev/null || die "please install the equivalents of these Debian packages, then run this again: $*"
    say "installing system packages through apt: $*"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# need COMMAND:PACKAGE...: install the packages whose command is missing.
need() {
    local pair missing=()
    for pair; do
        PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
    done
    [[ ${#missing[@]} == 0 ]] || install_packages $(printf '%s\n' "${missing[@]}" | sort -u)
}

# Print the compose command, in the form that is installed.
compose_command() {
    if docker compose version >/dev/null 2>&1; then
        echo docker compose
    else
        echo docker-compose
    fi
}

# Print the file of this machine's own trusted certificates, if it has any; containers that reach a
# registry need them.
own_certificates() {
    local file=${SSL_CERT_FILE:-${CURL_CA_BUNDLE:-}}
    [[ -z $file || ! -r $file ]] || readlink -f "$file"
}

# container_parent MODE: make the interface `rondel0`, which replaces a network card, for container networks of this
# mode (macvlan, ipvlan), and set `parent` to it. Fails if the kernel lacks the mode. The caller deletes $parent.
container_parent() {
    need ip:iproute2
    if [[ -z ${parent:-} ]]; then
        as_root ip link add rondel0 type veth peer name rondel1 2>/dev/null || return
        parent=rondel0
        as_root ip link set rondel0 up
        as_root ip link set rondel1 up
    fi
    as_root ip link add link "$parent" name rondel2 type "$1" 2>/dev/null || return
    as_root ip link delete rondel2
}
