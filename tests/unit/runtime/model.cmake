# model_*.c: a stand-in for the driver library that finds missing waits (model_driver.h), loaded by the tests of unit/runtime.
file(GLOB model_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/model_*.c)
add_library(model_driver MODULE ${model_sources})
set_target_properties(model_driver PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_include_directories(model_driver PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(model_driver PRIVATE ff_base Threads::Threads)
add_dependencies(test_plugins model_driver)

# random_*.c: random programs, checked against the host.
file(GLOB random_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/random_*.c)
add_library(random_programs STATIC EXCLUDE_FROM_ALL ${random_sources})
target_include_directories(random_programs PUBLIC ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(random_programs PUBLIC ff_runtime)
