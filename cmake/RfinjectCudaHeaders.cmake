# Finds CUDA's and CUPTI's headers: RFINJECT_CUDA_INCLUDE, an installed toolkit, or what scripts/setup took from
# NVIDIA's wheels (the same places in the same order as find_cuda_headers in scripts/lib.sh). Nothing of CUDA is
# linked; everything is opened at run time.
#
#   include(RfinjectCudaHeaders)
#   target_link_libraries(my_part PRIVATE rfinject_cuda_headers)

set(recipe ${PROJECT_SOURCE_DIR}/third_party_notes/cuda_headers.txt)
file(SHA256 ${recipe} recipe_hash)
string(SUBSTRING ${recipe_hash} 0 12 recipe_hash)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${recipe})
if(DEFINED ENV{XDG_CACHE_HOME})
  set(cache $ENV{XDG_CACHE_HOME})
else()
  set(cache $ENV{HOME}/.cache)
endif()

# cupti_range_profiler.h came with CUPTI 12.6, the oldest whose API we use.
find_path(RFINJECT_CUDA_INCLUDE cupti_range_profiler.h
  PATHS ENV RFINJECT_CUDA_INCLUDE
        $ENV{CUDA_HOME}/include /usr/local/cuda/include /usr/local/cuda/extras/CUPTI/include
        ${cache}/rfinject/cuda-headers-${recipe_hash}/include
  NO_DEFAULT_PATH
  DOC "Folder with cuda.h and cupti.h")
if(NOT RFINJECT_CUDA_INCLUDE)
  message(FATAL_ERROR "CUDA's headers (CUPTI 12.6 or newer) were not found. Run scripts/setup, which fetches them, "
                      "or pass -DRFINJECT_CUDA_INCLUDE=/path/to/cuda/include")
endif()

if(NOT TARGET rfinject_cuda_headers)
  add_library(rfinject_cuda_headers INTERFACE)
  target_include_directories(rfinject_cuda_headers SYSTEM INTERFACE ${RFINJECT_CUDA_INCLUDE})
endif()
