# Words that the scripts of this folder share; sourced, never run.

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
        die "this needs root, and there is no sudo: run as root: $*"
    fi
}

# Installs Debian packages, and says so first.
install_packages() {
    command -v apt-get >/dev/null || die "please install what these Debian packages hold, then run this again: $*"
    say "installing system packages through apt: $*"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# need COMMAND:PACKAGE...: installs the packages whose command is not there.
need() {
    local pair missing=()
    for pair; do
        PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
    done
    [[ ${#missing[@]} == 0 ]] || install_packages $(printf '%s\n' "${missing[@]}" | sort -u)
}

# The command of compose, in whichever of its two forms is here.
compose_command() {
    if docker compose version >/dev/null 2>&1; then
        echo docker compose
    else
        echo docker-compose
    fi
}

# The certificates that this machine trusts, if it was told of its own; containers that reach a registry need the same.
own_certificates() {
    local file=${SSL_CERT_FILE:-${CURL_CA_BUNDLE:-}}
    [[ -z $file || ! -r $file ]] || readlink -f "$file"
}
