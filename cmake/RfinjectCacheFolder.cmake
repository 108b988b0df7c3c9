# Where scripts keep what is costly to make, as scripts/lib.sh names it. Sets `cache`, the user's folder of caches, and
#
#   rfinject_cache_folder(NAME RESULT)
#
# sets RESULT to the folder that a script filled by the recipe third_party_notes/NAME.txt (with underscores for
# dashes): .../rfinject/NAME-<hash of the recipe>. A changed recipe configures again. The caller checks whether the
# folder exists.
if(DEFINED ENV{XDG_CACHE_HOME})
  set(cache $ENV{XDG_CACHE_HOME})
else()
  set(cache $ENV{HOME}/.cache)
endif()

function(rfinject_cache_folder name result)
  string(REPLACE "-" "_" file ${name})
  set(recipe ${PROJECT_SOURCE_DIR}/third_party_notes/${file}.txt)
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${recipe})
  file(SHA256 ${recipe} hash)
  string(SUBSTRING ${hash} 0 12 hash)
  set(${result} ${cache}/rfinject/${name}-${hash} PARENT_SCOPE)
endfunction()
