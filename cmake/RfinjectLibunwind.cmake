# Sets RFINJECT_LIBUNWIND_DIR: what scripts/build_libunwind made, in the place that libunwind_cache in scripts/lib.sh
# names. Where there is none, the injected library is built without native stacks. Debian's own archive will not do: it
# is not position-independent.
set(recipe ${PROJECT_SOURCE_DIR}/third_party_notes/libunwind.txt)
file(SHA256 ${recipe} recipe_hash)
string(SUBSTRING ${recipe_hash} 0 12 recipe_hash)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${recipe})
if(DEFINED ENV{XDG_CACHE_HOME})
  set(cache $ENV{XDG_CACHE_HOME})
else()
  set(cache $ENV{HOME}/.cache)
endif()

# Not kept in CMake's cache: a build that found none must find one that was made since.
unset(RFINJECT_LIBUNWIND_FOUND CACHE)
find_path(RFINJECT_LIBUNWIND_FOUND lib/libunwind.a
  PATHS ENV RFINJECT_LIBUNWIND_DIR ${cache}/rfinject/libunwind-${recipe_hash}
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
