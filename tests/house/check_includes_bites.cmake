# Show that check_includes.cmake can fail: each bad file in a small tree of its own must be named.
#
#	cmake -D WORK=<scratch folder> -P check_includes_bites.cmake

cmake_policy(VERSION 3.25)

set(checker ${CMAKE_CURRENT_LIST_DIR}/check_includes.cmake)

# The tree that keeps the rules.
function(make_good_tree)
	file(REMOVE_RECURSE ${WORK})
	file(WRITE ${WORK}/common/mem.h "#include <stddef.h>\n")
	file(WRITE ${WORK}/common/pool_internal.h "")
	file(WRITE ${WORK}/ipu/ipu_plan.c "#include \"ipu/ipu_plan.h\"\n#include \"common/mem.h\"\n")
	file(WRITE ${WORK}/ipu/ipu_plan.h "#include <sqlite3.h>\n#include \"schema_sql.h\"\n")
	file(WRITE ${WORK}/model/model.h "#include \"ipu/ipu_plan.h\"\n")
	file(WRITE ${WORK}/profiler/prof_db.h "#include \"common/mem.h\"\n")
	file(WRITE ${WORK}/profiler/prof_ring.h "#include <ipuscope/profiler.h>\n")
	file(WRITE ${WORK}/profiler/ipuscope/profiler.h "#include <stdint.h>\n")
	file(WRITE ${WORK}/outfeed/outfeed.h "#include <ipuscope/outfeed.h>\n")
	file(WRITE ${WORK}/outfeed/ipuscope/outfeed.h "#include <ipuscope/profiler.h>\n")
	file(WRITE ${WORK}/outfeed/outfeed_queue.c "#include \"profiler/prof_ring.h\"\n")
	file(WRITE ${WORK}/reports/report_x.h
		"#include \"profiler/prof_db.h\"\n#include \"profiler/prof_repair.h\"\n"
		"#include \"ipu/ipu_plan.h\"\n#include \"profiler/ipuscope/profiler.h\"\n"
		"#include \"outfeed/outfeed_captures.h\"\n")
	file(WRITE ${WORK}/popvision/ipuscope/report.h "#include <ipuscope/profiler.h>\n")
	file(WRITE ${WORK}/popvision/public/report_public.c "#include <ipuscope/report.h>\n")
	file(WRITE ${WORK}/viewer/view_x.c
		"#include \"reports/report_x.h\"\n#include \"profiler/prof_timeline.h\"\n")
	file(WRITE ${WORK}/trainer/fit.c
		"#include \"popvision/popvision.h\"\n#include \"outfeed/outfeed_queue.h\"\n#include \"model/model.h\"\n"
		"#include \"profiler/prof_ring.h\"\n#include \"ipu/ipu_plan.h\"\n")
	file(WRITE ${WORK}/examples/record.c "#include <ipuscope/profiler.h>\n#include <stdio.h>\n")
	file(WRITE ${WORK}/tests/test_x.c "#include \"common/pool_internal.h\"\n")
	file(WRITE ${WORK}/common/vectors.h
		"#ifndef COMMON_VECTORS_H\n#if defined(__SSE2__)\n#include <emmintrin.h>\n#endif\n#endif\n")
endfunction()

function(run_checker result output)
	execute_process(COMMAND ${CMAKE_COMMAND} -D ROOT=${WORK} -P ${checker}
		RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
	set(${result} ${code} PARENT_SCOPE)
	set(${output} "${out}${err}" PARENT_SCOPE)
endfunction()

# One bad file more, and the complaint it must bring.
function(expect_complaint file text complaint)
	make_good_tree()
	file(WRITE ${WORK}/${file} "${text}\n")
	run_checker(code out)
	string(FIND "${out}" "${file}: ${complaint}" at)
	if(code EQUAL 0 OR at EQUAL -1)
		message(SEND_ERROR "${file} with ${text} is not refused by \"${complaint}\":\n${out}")
	endif()
endfunction()

make_good_tree()
run_checker(code out)
if(NOT code EQUAL 0)
	message(FATAL_ERROR "the good tree is refused:\n${out}")
endif()

expect_complaint(common/bad.c "#include \"ipu/ipu_plan.h\"" "common may not include")
expect_complaint(common/bad.h "#include <ipuscope/profiler.h>" "common may not include")
expect_complaint(profiler/bad.c "#include <ipuscope/report.h>" "profiler may not include")
expect_complaint(ipu/bad.c "#include \"profiler/prof_db.h\"" "ipu may not include")
expect_complaint(ipu/bad.c "#include <ipuscope/profiler.h>" "ipu may not include")
expect_complaint(ipu/bad.c "#include \"model/model.h\"" "ipu may not include")
expect_complaint(model/bad.c "#include \"trainer/fit.h\"" "model may not include")
expect_complaint(model/bad.c "#include \"outfeed/outfeed_policy.h\"" "model may not include")
expect_complaint(model/bad.c "#include \"profiler/prof_db.h\"" "model may not include")
expect_complaint(outfeed/bad.c "#include \"model/model.h\"" "outfeed may not include")
expect_complaint(viewer/bad.c "#include \"model/model.h\"" "viewer may not include")
expect_complaint(profiler/bad.c "#include \"ipu/ipu_plan.h\"" "profiler may not include")
expect_complaint(outfeed/bad.c "#include \"trainer/fit.h\"" "outfeed may not include")
expect_complaint(outfeed/bad.c "#include \"ipu/ipu_plan.h\"" "outfeed may not include")
expect_complaint(reports/bad.c "#include \"profiler/prof_ring.h\"" "reports may not include")
expect_complaint(reports/bad.c "#include \"outfeed/outfeed_internal.h\"" "reports may not include")
expect_complaint(outfeed/bad.c "#include \"reports/report_x.h\"" "outfeed may not include")
expect_complaint(reports/bad.c "#include \"trainer/fit.h\"" "reports may not include")
expect_complaint(popvision/bad.c "#include \"profiler/prof_ring.h\"" "popvision may not include")
expect_complaint(popvision/bad.c "#include \"reports/report_x.h\"" "popvision may not include")
expect_complaint(popvision/bad.c "#include \"ipu/ipu_plan.h\"" "popvision may not include")
expect_complaint(trainer/bad.c "#include \"reports/report_x.h\"" "trainer may not include")
expect_complaint(viewer/bad.c "#include \"profiler/prof_repair.h\"" "viewer may not include")
expect_complaint(viewer/bad.c "#include \"ipu/ipu_plan.h\"" "viewer may not include")
expect_complaint(viewer/bad.c "  #  include \"trainer/fit.h\"" "viewer may not include")
expect_complaint(trainer/bad.c "#include \"viewer/view_x.h\"" "trainer may not include")
expect_complaint(trainer/bad.c "#include \"common/pool_internal.h\"" "trainer may not include")
expect_complaint(examples/bad.c "#include \"common/mem.h\"" "examples may not include")
expect_complaint(examples/bad.c "#include \"ipuscope/profiler.h\"" "examples may not include")
# Other ways to the same file.
expect_complaint(ipu/bad.c "#include \"prof_db.h\"" "ipu may not include")
expect_complaint(ipu/bad.c "#include <profiler/prof_db.h>" "ipu may not include")
expect_complaint(ipu/bad.c "#include \"../profiler/prof_db.h\"" "includes \"../profiler/prof_db.h\"")
# In a folder within a room.
expect_complaint(trainer/kernels/bad.c "#include \"viewer/view_x.h\"" "trainer may not include")
# Names.
expect_complaint(trainer/kernels/mem.h "" "the name is taken by common/mem.h")
expect_complaint(tests/fit.c "" "the name is taken by trainer/fit.c")
# Processors: without a condition, behind it, and within one that asks something else.
set(outside "#include <emmintrin.h> outside of any #if that names a processor")
expect_complaint(common/bad.c "#include <emmintrin.h>" "${outside}")
expect_complaint(common/bad.c "#if defined(__SSE2__)\n#endif\n#include <emmintrin.h>" "${outside}")
expect_complaint(bench/bad.h "#ifndef BAD_H\n#include <emmintrin.h>\n#endif" "${outside}")

file(REMOVE_RECURSE ${WORK})
