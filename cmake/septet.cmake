# Compiler settings and the one way to declare a room of the house.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(GTest REQUIRED)
include(GoogleTest)

find_program(SEPTET_CCACHE ccache)
if(SEPTET_CCACHE)
  # A build folder may stand anywhere: paths relative to the source keep the cache shared.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR}
      CCACHE_NOHASHDIR=1 ${SEPTET_CCACHE})
endif()
find_program(SEPTET_LLD ld.lld)
if(SEPTET_LLD)
  add_link_options(-fuse-ld=lld)
endif()

# What generated code needs too, which is compiled without our warnings.
add_library(septet_sanitizer INTERFACE)
if(SEPTET_SANITIZE)
  target_compile_options(septet_sanitizer INTERFACE -fsanitize=${SEPTET_SANITIZE}
                                                    -fno-sanitize-recover=all)
  target_link_options(septet_sanitizer INTERFACE -fsanitize=${SEPTET_SANITIZE})
  if(SEPTET_SANITIZE STREQUAL "thread")
    # Protobuf's map fields have more members under this macro, which Debian's library was built without.
    # The standard library takes the second name to leave out what the sanitizer does not understand.
    target_compile_options(septet_sanitizer INTERFACE -U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
  endif()
endif()

add_library(septet_options INTERFACE)
target_include_directories(septet_options INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(
  septet_options INTERFACE -Wall -Wextra -Wconversion -Wshadow -Wold-style-cast
                           -Wnon-virtual-dtor)
if(SEPTET_WARNINGS_AS_ERRORS)
  target_compile_options(septet_options INTERFACE -Werror)
endif()
target_link_libraries(septet_options INTERFACE septet_sanitizer fmt::fmt Threads::Threads)

# septet_room(NAME [DEPS room...] [EDGE_DEPS room...])
#
# src/NAME/*.cc        -> library septet_NAME (decides only)
# src/NAME/edge/*.cc   -> library septet_NAME_edge (touches the world)
# *_test.cc in either  -> executable NAME_test, every test known to ctest
#
# A file src/NAME/room.cmake, if there is one, adds what is special (third-party libraries).
function(septet_room name)
  cmake_parse_arguments(ARG "" "" "DEPS;EDGE_DEPS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/${name})

  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cc)
  file(GLOB edge_sources CONFIGURE_DEPENDS ${dir}/edge/*.cc)
  set(tests ${sources} ${edge_sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER edge_sources EXCLUDE REGEX "_test\\.cc$")

  septet_room_library(septet_${name} "${sources}")
  foreach(dep ${ARG_DEPS})
    target_link_libraries(septet_${name} ${SEPTET_LINK_KIND} septet_${dep})
  endforeach()

  set(edge_target "")
  if(ARG_EDGE_DEPS)
    set(edge_target septet_${name}_edge)
    septet_room_library(${edge_target} "${edge_sources}")
    target_link_libraries(${edge_target} ${SEPTET_LINK_KIND} septet_${name})
    foreach(dep ${ARG_EDGE_DEPS})
      target_link_libraries(${edge_target} ${SEPTET_LINK_KIND} septet_${dep})
    endforeach()
  endif()

  if(EXISTS ${dir}/room.cmake)
    include(${dir}/room.cmake)
  endif()

  if(tests AND NOT SEPTET_FUZZ)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE septet_${name} ${edge_target} septet_options
                                               GTest::gmock_main)
    if(EXISTS ${dir}/room_test.cmake)
      include(${dir}/room_test.cmake)
    endif()
    gtest_discover_tests(${name}_test TEST_PREFIX "${name}: " WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
                         DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120)
  endif()
endfunction()

# A static library, or an interface library while the room has no source file yet.
macro(septet_room_library target files)
  if("${files}" STREQUAL "")
    add_library(${target} INTERFACE)
    set(SEPTET_LINK_KIND INTERFACE)
  else()
    add_library(${target} STATIC ${files})
    set(SEPTET_LINK_KIND PUBLIC)
  endif()
  target_link_libraries(${target} ${SEPTET_LINK_KIND} septet_options)
endmacro()
