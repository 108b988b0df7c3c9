# Sets RFINJECT_LIBUNWIND_DIR: what scripts/build_libunwind made, in the place that libunwind_cache in scripts/lib.sh
# names. Where there is none, the injected library is built without native stacks. Debian's own archive will not do: it
# is not position-independent.
include(RfinjectCacheFolder)
rfinject_cache_folder(libunwind libunwind_cache)

# The result is not kept in CMake's cache: a build that found no libunwind must find one that was made since.
unset(RFINJECT_LIBUNWIND_FOUND CACHE)
find_path(RFINJECT_LIBUNWIND_FOUND lib/libunwind.a
  PATHS ENV RFINJECT_LIBUNWIND_DIR ${libunwind_cache}
  NO_DEFAULT_PATH)
set(RFINJECT_LIBUNWIND_DIR ${RFINJECT_LIBUNWIND_FOUND})
if(RFINJECT_LIBUNWIND_DIR)
  add_library(rfinject_libunwind STATIC IMPORTED)
  set_target_properties(rfinject_libunwind PROPERTIES
    IMPORTED_LOCATION ${RFINJECT_LIBUNWIND_DIR}/lib/libunwind.a
    INTERFACE_INCLUDE_DIRECTORIES ${RFINJECT_LIBUNWIND_DIR}/include)
else()
  message(STATUS "No libunwind: librfinject.so takes no native stacks. scripts/build_libunwind makes one.")
endif()
