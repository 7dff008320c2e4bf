package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTableHasMediansRatiosAndLimits(t *testing.T) {
	file := filepath.Join(t.TempDir(), "r.jsonl")
	lines := `{"ev":"done","side":"peer","workload":"pass","guarantee":"at_least_once","commit_ms":1000,"steady_per_cpu_s":200,"in":1000,"out":900,"total_cpu_ms":2000,"hwm_kib":1024000,"first_out_ms":4000,"t_ms":1000}
{"ev":"done","side":"go","workload":"pass","guarantee":"at_least_once","commit_ms":1000,"steady_per_cpu_s":600,"in":1000,"out":1000,"total_cpu_ms":500,"hwm_kib":102400,"first_out_ms":100,"t_ms":1000}
{"ev":"done","side":"go","workload":"pass","guarantee":"at_least_once","commit_ms":1000,"steady_per_cpu_s":800,"in":1000,"out":1000,"total_cpu_ms":500,"hwm_kib":102400,"first_out_ms":100,"t_ms":1000}
{"ev":"done","side":"go","workload":"pass","guarantee":"at_least_once","commit_ms":1000,"steady_per_cpu_s":5000,"in":1000,"out":1000,"total_cpu_ms":500,"hwm_kib":102400,"first_out_ms":100,"t_ms":1000}
{"ev":"timeout"}
{"ev":"done","side":"go","workload":"raw","guarantee":"at_least_once","commit_ms":1000,"steady_per_cpu_s":1000,"in":1000,"out":1000,"total_cpu_ms":500,"hwm_kib":51200,"first_out_ms":50,"t_ms":1000}
`
	if err := os.WriteFile(file, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := printTable(&out, []string{file}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| pass | at_least_once | 1000 ms | 200 | 800 | 4.00 | 500 | 2000 | 4.00 | 1000 | 100 | 0.10 | 4000 | 100 | 0.03 |",
		"| raw | at_least_once | 1000 ms | – | 1000 | – |",
		"pass / raw, at_least_once, 1000 ms: 0.80 of our own",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestMedian(t *testing.T) {
	v := func(r result) float64 { return r.HWM }
	if m := median([]result{{HWM: 9}, {HWM: 1}, {HWM: 3}, {HWM: 4}}, v); m != 3.5 {
		t.Errorf("median of 9 1 3 4: %v", m)
	}
}
