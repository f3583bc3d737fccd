# ga.awk - rows of aq-bench armci from the rounds of aq-bench armci --ga.
# SPDX-License-Identifier: BSD-3-Clause
#
# Input    library|round|name|size|ns; ours and theirs are libraries, theirs may be missing
# Output   rows as rows.awk takes them, of the section title: medians of the rounds, and of their
#          ratios

BEGIN { FS = "|" }

function quantile(of, n, q,    i, j, x) {
    for (i = 2; i <= n; i++) {
        x = of[i]
        for (j = i; j > 1 && of[j - 1] > x; j--)
            of[j] = of[j - 1]
        of[j] = x
    }
    return of[int((n - 1) * q + 1.5)]
}

$1 == ours && !(($3, $4) in seen) { names[++rows] = $3; sizes[rows] = $4; seen[$3, $4] }
$1 == ours { mine[$3, $4, $2] = $5; rounds = $2 }
$1 == theirs { other[$3, $4, $2] = $5; compared = 1 }

function verdict(ratio, spread) {
    if (ratio <= 1)
        return "ok"
    return spread > 1.5 ? "noise" : "MISSED"
}

function write(name, size,    r, a, b, ratios, ratio, spread) {
    for (r = 1; r <= rounds; r++) {
        a[r] = mine[name, size, r]
        b[r] = other[name, size, r]
        ratios[r] = compared ? a[r] / b[r] : 0
    }
    printf "%s|%s|%s|%.1f|", title, name, size, quantile(a, rounds, 0.5)
    if (!compared) {
        print "ns||||-|"
        return
    }
    ratio = quantile(ratios, rounds, 0.5)
    spread = quantile(ratios, rounds, 0.75) / quantile(ratios, rounds, 0.25)
    printf "ARMCI-MPI|%.1f|%.6f|%.2f|<= 1|%s\n", quantile(b, rounds, 0.5), ratio, spread,
        verdict(ratio, spread)
}

END { for (i = 1; i <= rows; i++) write(names[i], sizes[i]) }
