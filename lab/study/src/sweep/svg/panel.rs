//! One small chart, with the names of its lines at their ends.

use overlock_report::picture::{Axis, Canvas, Chart, Color, HPos, Point, VPos, pen};

use super::Curve;

/// A chart with all around it.
pub const WIDTH: i32 = 306;
/// The same.
pub const HEIGHT: i32 = 246;
/// The lines, without labels.
const PLOT: (i32, i32) = (160, 172);
/// From the corner of a chart to the corner of its lines.
const CORNER: (i32, i32) = (44, 42);
/// Between two names, one below the other.
const LINE: i32 = 12;

/// A chart.
pub struct Panel<'a> {
    /// Its title.
    pub machine: String,
    /// The line below.
    pub load: &'a str,
    /// The lines, the foremost last.
    pub curves: &'a [Curve],
}

impl Panel<'_> {
    /// Draws it there.
    pub fn draw(&self, canvas: &Canvas<'_>, (left, top): Point, x: Axis, y: Axis) {
        canvas.text((left + 8, top + 4), pen(14).bold(), &self.machine);
        canvas.text((left + 8, top + 22), pen(13).grey(), self.load);
        let corner = (left + CORNER.0, top + CORNER.1);
        let chart = Chart {
            corner,
            size: PLOT,
            x,
            y,
        };
        chart.draw(canvas, 11);
        let mut ends = Vec::new();
        for curve in self.curves {
            let points = curve.points.iter();
            let points: Vec<Point> = points.map(|&(x, y)| chart.at(x, y)).collect();
            let radius = (curve.style.stroke_width as i32).clamp(1, 2) + 1;
            for &point in &points {
                canvas.circle(point, radius, curve.style.color.filled());
            }
            ends.extend(points.last().map(|&end| (curve, end)));
            canvas.path(points, curve.style);
        }
        // The names, each near the end of its line.
        ends.sort_by_key(|(_, (_, y))| *y);
        let wanted: Vec<i32> = ends.iter().map(|(_, (_, y))| *y).collect();
        let places = apart(&wanted, corner.1, corner.1 + PLOT.1);
        let x = corner.0 + PLOT.0 + 12;
        for ((curve, end), y) in ends.into_iter().zip(places) {
            let colour = curve.style.color;
            canvas.path([end, (x - 2, y)], colour.mix(0.4));
            let pen = pen(12).coloured(colour).at(HPos::Left, VPos::Center);
            canvas.text((x, y), pen, &curve.name);
        }
    }
}

/// Places that are a line apart and within the bounds: those that are wanted, in their order, moved
/// down past the one before, or up where there is no room.
fn apart(wanted: &[i32], top: i32, bottom: i32) -> Vec<i32> {
    let mut places = wanted.to_vec();
    let mut least = top;
    for place in &mut places {
        *place = (*place).max(least);
        least = *place + LINE;
    }
    let mut most = bottom;
    for place in places.iter_mut().rev() {
        *place = (*place).min(most);
        most = *place - LINE;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_hide_each_other() {
        assert_eq!(apart(&[50, 90], 0, 100), [50, 90]);
        assert_eq!(apart(&[50, 51, 52], 0, 100), [50, 62, 74]);
        assert_eq!(apart(&[99, 100, 100], 0, 100), [76, 88, 100]);
        assert!(apart(&[], 0, 100).is_empty());
    }
}
