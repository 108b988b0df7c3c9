# shellcheck shell=bash
# Sourced by every script here: where things are, and how they talk.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# What is costly to make and does not depend on the tree's state lives outside of the tree, under a hash of its
# recipe: a fresh clone finds it, a changed recipe makes another one.
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/rfinject

say() { printf '%s\n' "$*" >&2; }
note() { printf 'note: %s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# The first 12 hex digits of the SHA-256 of a file.
hash_of() { sha256sum "$1" | cut -c1-12; }

# as_root COMMAND…: runs it as root; where that is impossible says what an administrator has to type.
as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif have sudo && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
    sudo "$@"
  else
    die "this needs root, and there is no usable sudo. As root: $*"
  fi
}

# The interpreter that is profiled: PYTHON, else Debian's own, never one that a version manager put first in PATH.
default_python() {
  if [[ -n ${PYTHON:-} ]]; then
    printf '%s\n' "$PYTHON"
  elif [[ -x /usr/bin/python3 ]]; then
    printf '/usr/bin/python3\n'
  else
    command -v python3 || die "no python3 here; run scripts/setup"
  fi
}

# Where CUDA's headers are: RFINJECT_CUDA_INCLUDE_DIR, an installed toolkit new enough for the range profiler (12.6), or
# what scripts/setup fetched. Prints nothing and fails when there are none. cmake/RfinjectCudaHeaders.cmake looks in the
# same places.
cuda_headers_recipe=$root/third_party_notes/cuda_headers.txt
cuda_headers_cache() { printf '%s/cuda-headers-%s\n' "$cache" "$(hash_of "$cuda_headers_recipe")"; }
find_cuda_headers() {
  local folder
  for folder in "${RFINJECT_CUDA_INCLUDE_DIR:-}" "${CUDA_HOME:+$CUDA_HOME/include}" /usr/local/cuda/include \
    /usr/local/cuda/extras/CUPTI/include "$(cuda_headers_cache)/include"; do
    if [[ -n $folder && -e $folder/cupti_range_profiler.h && -e $folder/cuda.h ]]; then
      printf '%s\n' "$folder"
      return 0
    fi
  done
  return 1
}

# Where the headers of the virtual GPU's runtimes are that scripts/setup fetched (virtual_gpu/CMakeLists.txt looks there).
virtual_gpu_headers_recipe=$root/third_party_notes/virtual_gpu_headers.txt
virtual_gpu_headers_cache() { printf '%s/virtual-gpu-headers-%s\n' "$cache" "$(hash_of "$virtual_gpu_headers_recipe")"; }

# Where the libunwind is that scripts/setup built (cmake/RfinjectLibunwind.cmake looks in the same place).
libunwind_recipe=$root/third_party_notes/libunwind.txt
libunwind_cache() { printf '%s/libunwind-%s\n' "$cache" "$(hash_of "$libunwind_recipe")"; }

# fetch_debian_source PACKAGE=VERSION FILE SHA256 FOLDER: puts a file of Debian's source package into FOLDER. Needs no
# root: apt fetches it with lists of its own, which it keeps in FOLDER/apt.
fetch_debian_source() {
  local package=$1 file=$2 sum=$3 folder=$4 apt=$4/apt list uri
  have apt-get || { note "no apt-get here to fetch the source package $package with"; return 1; }
  mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$apt/sources.d"
  # The machine's own sources, for source packages.
  for list in /etc/apt/sources.list.d/*.sources; do
    if [[ -e $list ]]; then
      sed 's/^Types:.*/Types: deb-src/' "$list" >"$apt/sources.d/$(basename "$list")"
    fi
  done
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
    sed -nE 's/^deb(-src)? /deb-src /p' | sort -u >"$apt/sources.list" || true
  local options=(-o "Dir::Etc::SourceList=$apt/sources.list" -o "Dir::Etc::SourceParts=$apt/sources.d"
    -o "Dir::State::Lists=$apt/lists" -o "Dir::Cache=$apt" -o APT::Sandbox::User= -o Acquire::Languages=none)
  apt-get -qq "${options[@]}" update >&2 || note "apt-get update failed for source packages; trying with what came"
  # The other files of the package are not needed.
  uri=$(apt-get -qq "${options[@]}" source --print-uris "$package" | awk -v file="$file" '$2 == file { print $1 }') || true
  uri=${uri//\'/}
  if [[ -z $uri ]] || ! /usr/lib/apt/apt-helper "${options[@]}" download-file "$uri" "$folder/$file" "SHA256:$sum" >&2; then
    note "$file of the source package $package could not be fetched"
    return 1
  fi
}
