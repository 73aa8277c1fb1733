// Zooms the pipelines: every piece of work carries its start and duration in ns (data-s, data-d).
document.documentElement.classList.add("scripted");
for (const svg of document.querySelectorAll(".gantt svg")) {
	const left = +svg.dataset.left, width = +svg.dataset.width, span = +svg.dataset.span;
	const works = [...svg.querySelectorAll("[data-s]")];
	const axis = svg.querySelector(".axis"), ticks = axis.querySelector("text");
	const down = ticks ? ticks.getAttribute("y") : 0;
	let from = 0, seen = span, drag = null;

	const time = (ns, step) => {
		const units = ["ns", "us", "ms", "s"];
		let unit = 0;
		while (step >= 1000 && unit < 3) { ns /= 1000; step /= 1000; unit++; }
		return +ns.toPrecision(6) + " " + units[unit];
	};
	const draw = () => {
		seen = Math.min(Math.max(seen, 20), span);
		from = Math.min(Math.max(from, 0), span - seen);
		const x = ns => left + (ns - from) / seen * width;
		for (const work of works) {
			const a = Math.max(x(+work.dataset.s), left);
			const b = Math.min(x(+work.dataset.s + +work.dataset.d), left + width);
			const rect = work.tagName === "rect" ? work : work.firstElementChild;
			const label = work.tagName === "rect" ? null : work.querySelector("text");
			rect.setAttribute("x", a);
			rect.setAttribute("width", Math.max(b - a, b >= left && a <= left + width ? .4 : 0));
			if (!label) continue;
			label.setAttribute("x", (a + b) / 2);
			label.setAttribute("visibility", b - a > 7.5 * label.textContent.length ? "visible" : "hidden");
		}
		let step = 10 ** Math.floor(Math.log10(seen / 8));
		step *= [1, 2, 5, 10].find(round => step * round >= seen / 8);
		axis.textContent = "";
		for (let at = Math.ceil(from / step) * step; at <= from + seen; at += step) {
			const tick = document.createElementNS("http://www.w3.org/2000/svg", "text");
			tick.setAttribute("class", "mid");
			tick.setAttribute("x", x(at));
			tick.setAttribute("y", down);
			tick.textContent = time(at, step);
			axis.append(tick);
		}
	};
	// Nanoseconds under the pointer.
	const at = event => {
		const box = svg.getBoundingClientRect();
		const x = (event.clientX - box.left) / box.width * svg.viewBox.baseVal.width;
		return from + (x - left) / width * seen;
	};
	const zoom = (factor, about) => {
		const share = (about - from) / seen;
		seen = Math.min(Math.max(seen * factor, 20), span);
		from = about - share * seen;
		draw();
	};
	svg.tabIndex = 0;
	svg.addEventListener("wheel", event => { event.preventDefault(); zoom(event.deltaY > 0 ? 1.25 : .8, at(event)); },
		{ passive: false });
	svg.addEventListener("pointerdown", event => { drag = at(event); svg.setPointerCapture(event.pointerId); });
	svg.addEventListener("pointerup", () => { drag = null; });
	svg.addEventListener("pointermove", event => { if (drag !== null) { from += drag - at(event); draw(); } });
	svg.addEventListener("keydown", event => {
		const keys = { "+": () => zoom(.8, from + seen / 2), "=": () => zoom(.8, from + seen / 2),
			"-": () => zoom(1.25, from + seen / 2), "0": () => { from = 0; seen = span; draw(); },
			ArrowLeft: () => { from -= seen / 10; draw(); }, ArrowRight: () => { from += seen / 10; draw(); } };
		if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
	});
}
