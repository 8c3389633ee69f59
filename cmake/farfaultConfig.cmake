# find_package(farfault): farfault::farfault is the shared libfarfault, farfault::static the static one.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/farfaultTargets.cmake)
if(NOT TARGET farfault::static)
  get_filename_component(farfault_prefix ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
  add_library(farfault::static STATIC IMPORTED)
  set_target_properties(farfault::static PROPERTIES
    IMPORTED_LOCATION ${farfault_prefix}/lib/libfarfault.a
    INTERFACE_INCLUDE_DIRECTORIES ${farfault_prefix}/include
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
  unset(farfault_prefix)
endif()
