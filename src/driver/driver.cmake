# The virtual GPU: ff_driver (everything in one static library, for unit tests) and the shared objects that stand in for
# NVIDIA's, in build/lib/farfault:
#
#   libfarfault-gpu.so    the engine with all its state, once per process; exports engine_* only
#   libcudart.so.11.0     the runtime API as of CUDA 11, 12 and 13: the same sources, compiled with CUDART_MAJOR = 11, 12
#   libcudart.so.12       or 13 (struct layouts and signatures differ); every symbol has the version node that is named
#   libcudart.so.13       like the soname, because programs ask for cudaMalloc@libcudart.so.13
#   libcuda.so.1          the driver API, symbols without versions, as NVIDIA's
#   libnvidia-ml.so.1     the management library: what frameworks ask of it
#   libnvJitLink.so.12    stand-ins for NVIDIA's linker of code that is made at run time
#   libnvJitLink.so.13
#   libcupti.so.12, .13   the profiling library: its version, and that there is nothing to profile
#   libcufft.so.10        a stand-in for cuFFT, as of CUDA 11, 12 and 13, with kernels of our own (needs clang)
#   libcufft.so.11
#   libcufft.so.12
#   libcufile.so.0        a stand-in for GPUDirect Storage: files to and from the memory of the GPU
#   libfarfault-preload.so preloaded: PTX from NVRTC, our libraries in the place of those that are loaded by a path
#   libfarfault-clock.so  preloaded for --virtual-time: the program's clocks
#   libfarfault-nvtx.so   loaded by NVTX and by the engine: the ranges that the program is in
#   libnvToolsExt.so.1    NVTX 2, for programs that link it
#
# Which file goes where: engine/ into the engine, runtime_api/ into libcudart, driver_api/ and private_runtimes/ into libcuda, injection/preload*.c and virtual_clock.c alone,
# virtual_real.c into all that keep the host's time in addition to it, errors.c and properties.c (tables without state) into all.
# A stub is a weak definition: a function that cudart_*.c or libcuda_*.c defines replaces it at link time.
# A public function needs default visibility (ENGINE_API, CUDART_API, LIBCUDA); the version scripts *.map let nothing else
# out. With FARFAULT_SANITIZE=ON a program that is run on these needs LD_PRELOAD=$(cc -print-file-name=libasan.so).
set(driver_dir ${CMAKE_SOURCE_DIR}/src/driver)
file(GLOB driver_engine CONFIGURE_DEPENDS ${driver_dir}/engine/*.c)
file(GLOB driver_cudart CONFIGURE_DEPENDS ${driver_dir}/runtime_api/cudart_*.c)
file(GLOB driver_libcuda CONFIGURE_DEPENDS ${driver_dir}/driver_api/libcuda_*.c)
if(FARFAULT_PRIVATE_RUNTIMES)
  file(GLOB driver_private CONFIGURE_DEPENDS ${driver_dir}/private_runtimes/*.c)
else()
  add_compile_definitions(FARFAULT_NO_PRIVATE_RUNTIMES)
endif()
file(GLOB driver_preload CONFIGURE_DEPENDS ${driver_dir}/injection/preload*.c)
set(driver_runtime_ptx ${CMAKE_BINARY_DIR}/generated/driver/device_runtime.c) # linked to modules that call it
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/generated/driver)
add_custom_command(OUTPUT ${driver_runtime_ptx}
                   COMMAND ${CMAKE_COMMAND} -DIN=${driver_dir}/engine/device_runtime.ptx -DOUT=${driver_runtime_ptx} -DNAME=engine_device_runtime_ptx
                           -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
                   DEPENDS ${driver_dir}/engine/device_runtime.ptx ${CMAKE_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
list(APPEND driver_engine ${driver_runtime_ptx})
set(driver_tables ${driver_dir}/errors.c ${driver_dir}/properties.c)
set(driver_linked ${driver_dir}/linked_image.c ${driver_dir}/linked_object.c)
set(driver_nvtx ${driver_dir}/injection/nvtx.c ${driver_dir}/injection/nvtx_calls.c ${driver_dir}/injection/nvtx_inject.c)

# libbacktrace, which GCC brings, also for another compiler: lines of the program's sources
execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libbacktrace.a OUTPUT_VARIABLE backtrace_archive OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT EXISTS "${backtrace_archive}") # the compiler found none, and gives back the name
  file(GLOB backtrace_archives /usr/lib/gcc/${CMAKE_SYSTEM_PROCESSOR}-linux-gnu/*/libbacktrace.a)
  set(backtrace_archive "")
  foreach(archive ${backtrace_archives})
    set(backtrace_archive ${archive})
  endforeach()
endif()
get_filename_component(backtrace_folder "${backtrace_archive}" DIRECTORY)
if(backtrace_archive AND EXISTS ${backtrace_folder}/include/backtrace.h AND CMAKE_OBJCOPY)
  # it asks engine_site_place.c which objects of the process it is to read; its folder has headers that belong to GCC alone
  set(driver_backtrace ${CMAKE_BINARY_DIR}/generated/driver/libbacktrace.a)
  execute_process(COMMAND ${CMAKE_OBJCOPY} --redefine-sym dl_iterate_phdr=site_iterate_objects ${backtrace_archive} ${driver_backtrace} COMMAND_ERROR_IS_FATAL ANY)
  configure_file(${backtrace_folder}/include/backtrace.h ${CMAKE_BINARY_DIR}/generated/driver/backtrace.h COPYONLY)
  set_source_files_properties(${driver_dir}/engine/engine_site_place.c PROPERTIES INCLUDE_DIRECTORIES ${CMAKE_BINARY_DIR}/generated/driver)
else()
  set_source_files_properties(${driver_dir}/engine/engine_site_place.c PROPERTIES COMPILE_DEFINITIONS FARFAULT_NO_BACKTRACE)
endif()

# driver_objects(NAME source...): what is compiled once for a shared object and for ff_driver.
function(driver_objects name)
  add_library(${name} OBJECT ${ARGN})
  ff_compile_fast(${name})
  ff_check_threads(${name})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
endfunction()
driver_objects(driver-engine ${driver_engine} ${driver_tables})
driver_objects(driver-runtime-api ${driver_cudart})
target_compile_definitions(driver-runtime-api PRIVATE CUDART_MAJOR=13)
driver_objects(driver-libcuda ${driver_libcuda} ${driver_private} ${driver_linked})
driver_objects(driver-nvtx ${driver_nvtx})
foreach(api driver-runtime-api driver-libcuda)
  target_compile_options(${api} PRIVATE -fno-optimize-sibling-calls) # the call that failed stands on the stack
endforeach()

ff_uses(driver_uses driver)
add_library(ff_driver STATIC $<TARGET_OBJECTS:driver-engine> $<TARGET_OBJECTS:driver-runtime-api> $<TARGET_OBJECTS:driver-libcuda> $<TARGET_OBJECTS:driver-nvtx>
  ${driver_dir}/stand_ins/nvjitlink.c ${driver_dir}/stand_ins/nvml.c ${driver_dir}/stand_ins/nvml_board.c ${driver_dir}/stand_ins/nvml_activity.c ${driver_dir}/stand_ins/nvml_links.c ${driver_dir}/stand_ins/cupti.c ${driver_dir}/stand_ins/cupti_stubs.c)
ff_compile_fast(ff_driver)
ff_check_threads(ff_driver)
target_include_directories(ff_driver PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(ff_driver PUBLIC ${driver_uses} ${driver_backtrace} ${CMAKE_DL_LIBS} Threads::Threads m)

# driver_shared(TARGET FILE MAP source...): the shared object FILE, whose soname is FILE too.
function(driver_shared target file map)
  add_library(${target} SHARED ${ARGN})
  ff_compile_fast(${target})
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME ${file} NO_SONAME ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/farfault
    BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN" BUILD_WITH_INSTALL_RPATH ON
    LINK_DEPENDS ${driver_dir}/${map})
  target_link_options(${target} PRIVATE "LINKER:-soname,${file}" "LINKER:--version-script,${driver_dir}/${map}"
    "LINKER:--enable-new-dtags" "LINKER:-z,nodelete") # dlclose of a plug-in must not end the virtual GPU
  if(NOT FARFAULT_SANITIZE) # there the sanitizer's own symbols stay open until the program has them
    target_link_options(${target} PRIVATE "LINKER:-z,defs")
  endif()
endfunction()

if(driver_engine)
  driver_shared(nvtx libfarfault-nvtx.so injection/nvtx.map $<TARGET_OBJECTS:driver-nvtx>)
  set_target_properties(nvtx PROPERTIES LINKER_LANGUAGE C)
  target_link_options(nvtx PRIVATE LINKER:--as-needed) # a program may use NVTX and no GPU
  target_link_libraries(nvtx PRIVATE ff_base Threads::Threads)
  driver_shared(nvtoolsext libnvToolsExt.so.1 stand_ins/nvtoolsext.map ${driver_dir}/stand_ins/nvtoolsext.c ${driver_dir}/injection/nvtx_calls.c)
  target_link_libraries(nvtoolsext PRIVATE nvtx)
  driver_shared(farfault-gpu libfarfault-gpu.so engine/engine.map $<TARGET_OBJECTS:driver-engine>)
  set_target_properties(farfault-gpu PROPERTIES LINKER_LANGUAGE C)
  target_link_libraries(farfault-gpu PRIVATE nvtx ${driver_uses} ${driver_backtrace} ${CMAKE_DL_LIBS} Threads::Threads m)
  foreach(version 11.0 12 13)
    string(REGEX REPLACE "\\..*" "" major ${version})
    set(runtime_api ${driver_cudart})
    if(major EQUAL 13)
      set(runtime_api $<TARGET_OBJECTS:driver-runtime-api>)
    endif()
    driver_shared(cudart-${major} libcudart.so.${version} runtime_api/cudart_${major}.map
      ${runtime_api} ${driver_tables} ${driver_dir}/runtime_api/stubs_cudart.c)
    target_compile_definitions(cudart-${major} PRIVATE CUDART_MAJOR=${major})
    target_compile_options(cudart-${major} PRIVATE -fno-optimize-sibling-calls) # the call that failed stands on the stack
    target_link_libraries(cudart-${major} PRIVATE farfault-gpu ff_base Threads::Threads m)
  endforeach()
  driver_shared(cuda-1 libcuda.so.1 driver_api/libcuda.map $<TARGET_OBJECTS:driver-libcuda> ${driver_tables} ${driver_dir}/driver_api/stubs_libcuda.c)
  target_compile_options(cuda-1 PRIVATE -fno-optimize-sibling-calls)
  target_link_libraries(cuda-1 PRIVATE farfault-gpu ff_base ${CMAKE_DL_LIBS} Threads::Threads m)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/lib/farfault)
  file(CREATE_LINK libcuda.so.1 ${CMAKE_BINARY_DIR}/lib/farfault/libcuda.so SYMBOLIC) # for what is linked with -lcuda while a program runs (Triton)
  configure_file(${driver_dir}/stand_ins/ptxas ${CMAKE_BINARY_DIR}/lib/farfault/ptxas COPYONLY)
  add_executable(tileiras ${driver_dir}/stand_ins/tileiras.c)
  set_target_properties(tileiras PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/farfault/assemblers)
  target_link_libraries(tileiras PRIVATE ff_tile ff_base)
  configure_file(${driver_dir}/stand_ins/driver-version ${CMAKE_BINARY_DIR}/lib/farfault/driver-version COPYONLY)
  foreach(file class vendor numa_node)
    configure_file(${driver_dir}/stand_ins/pci-gpu/${file} ${CMAKE_BINARY_DIR}/lib/farfault/pci-gpu/${file} COPYONLY)
  endforeach()
  foreach(major 12 13)
    driver_shared(nvjitlink-${major} libnvJitLink.so.${major} stand_ins/nvjitlink_${major}.map ${driver_dir}/stand_ins/nvjitlink.c ${driver_linked})
    target_compile_definitions(nvjitlink-${major} PRIVATE NVJITLINK_MAJOR=${major})
    target_link_libraries(nvjitlink-${major} PRIVATE ff_base ${CMAKE_DL_LIBS})
    driver_shared(cupti-${major} libcupti.so.${major} stand_ins/cupti_${major}.map ${driver_dir}/stand_ins/cupti.c ${driver_dir}/stand_ins/cupti_stubs.c)
    target_compile_definitions(cupti-${major} PRIVATE CUPTI_MAJOR=${major})
    target_link_libraries(cupti-${major} PRIVATE farfault-gpu)
  endforeach()
  include(${driver_dir}/stand_ins/cufft/cufft.cmake)
  driver_shared(cufile libcufile.so.0 stand_ins/cufile.map ${driver_dir}/stand_ins/cufile.c)
  target_link_libraries(cufile PRIVATE ff_base ${CMAKE_DL_LIBS} Threads::Threads)
  driver_shared(nvml libnvidia-ml.so.1 stand_ins/nvml.map ${driver_dir}/stand_ins/nvml.c ${driver_dir}/stand_ins/nvml_board.c ${driver_dir}/stand_ins/nvml_activity.c ${driver_dir}/stand_ins/nvml_links.c ${driver_dir}/stand_ins/nvml_stubs.c ${driver_tables})
  target_link_libraries(nvml PRIVATE farfault-gpu ff_base)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT FARFAULT_SANITIZE AND NOT FARFAULT_SANITIZE_THREADS) # it writes machine code; a sanitizer would have to come before it
    driver_shared(preload libfarfault-preload.so injection/preload.map ${driver_preload})
    target_link_options(preload PRIVATE LINKER:--as-needed) # it goes into every process: nothing but the C library
    target_link_libraries(preload PRIVATE ff_fatbin ff_base ${CMAKE_DL_LIBS})
    driver_shared(clock libfarfault-clock.so injection/clock.map ${driver_dir}/injection/virtual_clock.c)
    target_link_libraries(clock PRIVATE ${CMAKE_DL_LIBS} Threads::Threads)
    foreach(keeps farfault-gpu cuda-1)
      target_sources(${keeps} PRIVATE ${driver_dir}/injection/virtual_real.c)
      target_link_options(${keeps} PRIVATE LINKER:--wrap=clock_gettime LINKER:--wrap=nanosleep LINKER:--wrap=poll)
    endforeach()
  endif()
endif()
