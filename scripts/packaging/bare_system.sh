# Sourced by scripts/test_prefix, test_packages and test_wheel, from the top of the tree: bare systems in chroots, which need root and debootstrap. They
# are kept in build-roots/, or the folder that CHROOTS names.
roots=${CHROOTS:-$PWD/build-roots}

bare_debian() {  # packages, folder
  debootstrap --variant=minbase ${1:+--include="$1"} bookworm "$2"
}
bare_ubuntu() {  # 24.04, from archive.ubuntu.com
  local keys=/usr/share/keyrings/ubuntu-archive-keyring.gpg
  if [ ! -f "$keys" ]; then  # Debian 12 has no package of them
    wget -q -O "$roots/keys.deb" https://archive.ubuntu.com/ubuntu/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb
    dpkg-deb -x "$roots/keys.deb" "$roots/keys"
    keys=$roots/keys$keys
  fi
  debootstrap --variant=minbase --components=main,universe ${1:+--include="$1"} --keyring="$keys" noble "$2" http://archive.ubuntu.com/ubuntu \
    /usr/share/debootstrap/scripts/gutsy
}

# Sets `root`, a new copy of the system (debian or ubuntu) that is kept under that name and has these packages.
new_root() {  # system, name, packages
  [ "$(id -u)" -eq 0 ] || { echo "$0: a chroot needs root" >&2; return 2; }
  command -v debootstrap >/dev/null || { echo "$0: debootstrap is missing: apt-get install debootstrap" >&2; return 2; }
  local bare=$roots/$2
  root=$roots/$2-trial
  mkdir -p "$roots"
  [ -f "$bare/.complete" ] || { rm -rf "$bare"; "bare_$1" "${3:-}" "$bare" >"$roots/$2.log" && touch "$bare/.complete"; }
  rm -rf "$root"
  cp -a --reflink=auto "$bare" "$root"
  mkdir -p "$root/etc/ssl/certs"
  cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
  for file in /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do [ ! -f "$file" ] || cp -L "$file" "$root$file"; done  # whom this machine trusts
}

# Runs a command in the new root, in a name space of its own: what is mounted there goes with it.
inside() {
  unshare --mount bash -c 'root=$1; shift; mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" && mount -t tmpfs tmpfs "$root/tmp" &&
    mount -t sysfs sysfs "$root/sys" && exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 chroot "$root" "$@"' inside "$root" "$@"
}

# Tries each of the words (the script itself with --one WORD, in a shell of its own, which ends at the first failure), and tells which failed.
try_each() {
  local name failed=()
  for name in "$@"; do
    echo "== $name"
    "$PWD/scripts/${0##*/}" --one "$name" || failed+=("$name")
  done
  [ ${#failed[@]} -eq 0 ] || { echo "failed: ${failed[*]}" >&2; exit 1; }
}
