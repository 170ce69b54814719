# Functions for the scripts ci/*-env, which source this file. They make a cached environment outside of the checkout, and install
# this checkout's wheel into it.
#   begin NAME FILE…   names the environment, waits for other runs, and reserves standard output for `finish`
#   if stale; then …   true if the environment is missing or one of the FILEs has changed. `stale` then makes a new, empty one
#   made               marks the environment as complete
#   finish PATH…       installs this checkout's wheel and the PATHs, and prints the path of the environment
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

# The stamp is written last. So an installation starts again if it was interrupted, or if the script has changed since.
made() { printf '%s\n' "$stamp" >"$env/stamp"; }

finish() {
  "${pip[@]}" install --no-deps --force-reinstall "$wheel" "$@"
  printf '%s\n' "$env" >&3
}

# purelib ENVIRONMENT: prints the folder of its packages.
purelib() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }
