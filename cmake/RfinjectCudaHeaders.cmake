# Sets RFINJECT_CUDA_INCLUDE_DIR, the folder with cuda.h and cupti.h: what the user set, an installed toolkit, or what
# scripts/setup took from NVIDIA's wheels (the places of find_cuda_headers in scripts/lib.sh, in its order). Nothing of
# CUDA is linked; everything is opened at run time.

include(RfinjectCacheFolder)
rfinject_cache_folder(cuda-headers cuda_headers_cache)

# cupti_range_profiler.h came with CUPTI 12.6, the oldest whose API we use.
find_path(RFINJECT_CUDA_INCLUDE_DIR cupti_range_profiler.h
  PATHS ENV RFINJECT_CUDA_INCLUDE_DIR
        $ENV{CUDA_HOME}/include /usr/local/cuda/include /usr/local/cuda/extras/CUPTI/include
        ${cuda_headers_cache}/include
  NO_DEFAULT_PATH
  DOC "Folder with cuda.h and cupti.h")
if(NOT RFINJECT_CUDA_INCLUDE_DIR)
  message(FATAL_ERROR "The headers of CUDA and CUPTI (12.6 or later) were not found. Run scripts/setup, which fetches "
                      "them, or pass -DRFINJECT_CUDA_INCLUDE_DIR=/path/to/cuda/include. Neither a GPU nor a driver is "
                      "needed.")
endif()
