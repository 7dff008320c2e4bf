package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
)

// result is a line of a result file.
type result struct {
	Ev        string  `json:"ev"`
	Side      string  `json:"side"`
	Workload  string  `json:"workload"`
	Guarantee string  `json:"guarantee"`
	CommitMS  float64 `json:"commit_ms"`
	In        float64 `json:"in"`
	Out       float64 `json:"out"`
	PerCPU    float64 `json:"steady_per_cpu_s"`
	HWM       float64 `json:"hwm_kib"`
	FirstOut  float64 `json:"first_out_ms"`
	BrokerCPU float64 `json:"broker_cpu_ms"`
	OtherCPU  float64 `json:"other_cpu_ms"`
	TotalCPU  float64 `json:"total_cpu_ms"`
	Elapsed   float64 `json:"t_ms"`
}

// setting is what two runs must share to be compared.
type setting struct {
	workload, guarantee string
	commitMS            float64
}

type results map[setting]map[string][]result // by side

func readResults(files []string) (results, error) {
	all := results{}
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var r result
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if r.Ev != "done" {
				continue
			}
			key := setting{r.Workload, r.Guarantee, r.CommitMS}
			if all[key] == nil {
				all[key] = map[string][]result{}
			}
			all[key][r.Side] = append(all[key][r.Side], r)
		}
		if err := lines.Err(); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

// printTable prints medians of both sides and their ratios: records per CPU-second, steady and of the whole run (larger
// is better for us), resident memory and time to the first output (smaller is better), and what others took of the machine.
func printTable(w io.Writer, files []string) error {
	all, err := readResults(files)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "| workload | guarantee | commit | records per CPU-s: Kafka Streams | Millrace | ratio | whole run | | ratio | peak RSS MiB | | ratio | first output ms | | ratio | broker CPU ms | | others' CPU | runs |")
	fmt.Fprintln(w, "|---|---|--:|"+strings.Repeat("--:|", 16))
	for _, key := range all.settings() {
		p, g := all[key]["peer"], all[key]["go"]
		fmt.Fprintf(w, "| %s | %s | %.0f ms |", key.workload, key.guarantee, key.commitMS)
		for _, m := range []struct {
			of     func(result) float64
			format string
		}{
			{func(r result) float64 { return r.PerCPU }, "%.0f"},
			{wholeRun, "%.0f"},
			{func(r result) float64 { return r.HWM / 1024 }, "%.0f"},
			{func(r result) float64 { return r.FirstOut }, "%.0f"},
		} {
			a, b := median(p, m.of), median(g, m.of)
			fmt.Fprintf(w, " %s | %s | %s |", number(m.format, a), number(m.format, b), number("%.2f", b/a))
		}
		broker := func(r result) float64 { return r.BrokerCPU }
		fmt.Fprintf(w, " %s | %s |", number("%.0f", median(p, broker)), number("%.0f", median(g, broker)))
		fmt.Fprintf(w, " %s | %d+%d |\n", number("%.0f %%", 100*median(append(p, g...), othersShare)), len(p), len(g))
	}
	all.printLimits(w)
	return nil
}

// wholeRun is records per CPU-second from the start of the process, warm-up included. It is the figure to compare
// where two stages run one after the other: the first may be through before the steady part begins.
func wholeRun(r result) float64 { return max(r.In, r.Out) * 1000 / r.TotalCPU }

// othersShare is the processor time that neither application nor broker took, in cores.
func othersShare(r result) float64 { return r.OtherCPU / r.Elapsed }

// printLimits relates the framework to the hand-written loops on the same client, guarantee by guarantee.
func (all results) printLimits(w io.Writer) {
	perCPU := func(r result) float64 { return r.PerCPU }
	for _, key := range all.settings() {
		limit, ok := map[string]string{"pass": "raw", "count": "rawcount"}[key.workload]
		by := all[setting{limit, key.guarantee, key.commitMS}]["go"]
		if ok && len(by) > 0 && len(all[key]["go"]) > 0 {
			fmt.Fprintf(w, "\n%s / %s, %s, %.0f ms: %.2f of our own hand-written loop\n", key.workload, limit, key.guarantee,
				key.commitMS, median(all[key]["go"], perCPU)/median(by, perCPU))
		}
	}
}

func (all results) settings() []setting {
	keys := make([]setting, 0, len(all))
	for k := range all {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b setting) int {
		return cmp.Or(cmp.Compare(a.guarantee, b.guarantee), cmp.Compare(a.commitMS, b.commitMS),
			cmp.Compare(slices.Index(workloads, a.workload), slices.Index(workloads, b.workload)))
	})
	return keys
}

func median(rs []result, of func(result) float64) float64 {
	if len(rs) == 0 {
		return math.NaN()
	}
	values := make([]float64, len(rs))
	for i, r := range rs {
		values[i] = of(r)
	}
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 0 {
		return (values[half-1] + values[half]) / 2
	}
	return values[half]
}

// number prints a dash for what was not measured.
func number(format string, v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	return fmt.Sprintf(format, v)
}
