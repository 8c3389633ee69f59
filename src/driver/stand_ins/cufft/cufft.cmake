# The stand-in for cuFFT: its kernels become PTX by clang, as those of the bundled workloads do, and the PTX a C array in the library.
find_program(FARFAULT_CLANG NAMES clang clang-19 clang-18 clang-17 clang-16 clang-15 clang-14)
if(NOT FARFAULT_CLANG)
  message(WARNING "no clang: the stand-in for cuFFT is not built (apt-get install clang)")
  return()
endif()
set(cufft_dir ${driver_dir}/stand_ins/cufft)
set(cufft_made ${CMAKE_BINARY_DIR}/generated/cufft)
file(MAKE_DIRECTORY ${cufft_made})
add_custom_command(OUTPUT ${cufft_made}/cufft_kernels.ptx
                   COMMAND ${FARFAULT_CLANG} -x cuda -nocudainc -nocudalib --cuda-device-only --cuda-gpu-arch=sm_75 -Xclang -target-feature -Xclang +ptx64
                           -Wno-unknown-cuda-version -Wall -Wextra -O3 -S -I${CMAKE_SOURCE_DIR}/src ${cufft_dir}/cufft_kernels.cu -o ${cufft_made}/cufft_kernels.ptx
                   DEPENDS ${cufft_dir}/cufft_kernels.cu ${cufft_dir}/cufft_pass.h VERBATIM)
add_custom_command(OUTPUT ${cufft_made}/cufft_kernels.c
                   COMMAND ${CMAKE_COMMAND} -DIN=${cufft_made}/cufft_kernels.ptx -DOUT=${cufft_made}/cufft_kernels.c -DNAME=cufft_ptx -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
                   DEPENDS ${cufft_made}/cufft_kernels.ptx ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
file(GLOB driver_cufft CONFIGURE_DEPENDS ${cufft_dir}/*.c)
set(cufft_versions ${cufft_dir}/cufft.c) # the version that a program asks for
list(REMOVE_ITEM driver_cufft ${cufft_versions})
add_library(cufft-objects OBJECT ${driver_cufft} ${cufft_made}/cufft_kernels.c) # once, for all libraries
target_include_directories(cufft-objects PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
set_target_properties(cufft-objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
foreach(major 10 11 12)
  driver_shared(cufft-${major} libcufft.so.${major} stand_ins/cufft/cufft_${major}.map ${cufft_versions} $<TARGET_OBJECTS:cufft-objects>)
  target_compile_definitions(cufft-${major} PRIVATE CUFFT_MAJOR=${major})
  target_link_libraries(cufft-${major} PRIVATE ff_base ${CMAKE_DL_LIBS} Threads::Threads m)
endforeach()
