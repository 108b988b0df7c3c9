# rfinject_absl: the parts of Abseil that the command uses. Debian's CMake package names the shared libraries only, and
# the command is linked statically; its pkg-config files let the linker take the archives where it is told -static.
find_package(PkgConfig REQUIRED)
pkg_check_modules(RFINJECT_ABSL REQUIRED
  absl_flat_hash_map absl_flat_hash_set absl_span absl_status absl_statusor absl_str_format absl_strings absl_time)
add_library(rfinject_absl INTERFACE)
target_link_libraries(rfinject_absl INTERFACE ${RFINJECT_ABSL_LIBRARIES})
