# Sourced by the scripts ci/*-env: a cached environment outside of the checkout, made once, with this checkout's wheel in it.
#   begin NAME FILE…   names the environment, waits for other runs, and prints nothing but what `finish` prints
#   if stale; then …   true if there is no environment yet, or one of the FILEs changed since: a new one is there, empty
#   made               notes that the environment has all that it needs
#   finish PATH…       installs this checkout's wheel, and PATHs, and prints the environment's path
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${STOPSCAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/stopscan}

begin() {
  exec 3>&1 1>&2 # standard output is for the path
  env=$cache/$1
  pip=("$env/bin/python" -m pip --quiet --disable-pip-version-check)
  stamp=$(cat "${@:2}" | sha256sum)
  wheel=$(bash "$root/ci/wheel")
  mkdir -p "$cache"
  exec 9>"$env.lock"
  flock 9
}

stale() {
  if [ "$(cat "$env/stamp" 2>/dev/null)" = "$stamp" ]; then return 1; fi
  rm -rf "$env"
  python3 -m venv "$env"
}

# The stamp is written last, so that an installation cut short, or made by another version of a script, starts again.
made() { printf '%s\n' "$stamp" >"$env/stamp"; }

finish() {
  "${pip[@]}" install --no-deps --force-reinstall "$wheel" "$@"
  printf '%s\n' "$env" >&3
}

# purelib ENVIRONMENT: where its packages are.
purelib() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
